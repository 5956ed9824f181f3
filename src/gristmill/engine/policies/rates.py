"""How fast a worker of a group is, and how much a group still has to do.

Only useful time counts: a worker that waits says nothing about its speed. A task that has run longer than the mean
counts with the time beyond it, so a straggler lowers the estimate before it has ended. (Counting all running time would
lower it the more, the more workers there are: their half-done tasks bring seconds and no completions.) Old completions
fade, so that the estimate follows a change within about fifty of them, or within 20 s if that is longer.
"""

from collections.abc import Iterable, Sequence

import msgspec

MEMORY = 50  # completions an estimate rests on, at least
MEMORY_S = 20.0  # and the completions of so many seconds: with many workers fifty are no time at all
MEASURED = 8  # completions before a rate is believed


class Prior(msgspec.Struct, frozen=True):
    """What is believed of a group before it has done anything: tasks a worker serves a second, and what it takes."""

    rate: float
    setup_s: float = 0.0
    fan_out: float = 1.0


class Rate(msgspec.Struct):
    """Completions and the seconds of work they took, fading. A prior counts as much as the first few completions."""

    completions: int = 0
    weight: float = 0.0
    seconds: float = 0.0
    outputs: float = 0.0
    has_prior: bool = False

    @classmethod
    def starting_from(cls, prior: Prior | None) -> "Rate":
        """Return the rate of a group nobody has seen at work in this run."""
        if prior is None:
            return cls()
        seconds, outputs = MEASURED / prior.rate, MEASURED * prior.fan_out
        return cls(weight=MEASURED, seconds=seconds, outputs=outputs, has_prior=True)

    def add(self, seconds: float, outputs: int, *, workers: int = 1) -> None:
        """Learn from a task that took so long and became so many, when so many workers were at it."""
        self.completions += 1
        mean = self.seconds / self.weight if self.weight else seconds
        # A task much longer than usual may be the first of many: it makes what was before count less.
        memory = workers * MEMORY_S / max(mean, seconds, 1e-9)
        fade = 1 - 1 / (memory if memory > MEMORY else MEMORY)
        self.weight = self.weight * fade + 1
        self.seconds = self.seconds * fade + seconds
        self.outputs = self.outputs * fade + outputs

    @property
    def is_known(self) -> bool:
        """Whether there is enough to believe it."""
        return self.has_prior or self.completions >= MEASURED

    def per_worker(self, running_s: Iterable[float] = ()) -> float:
        """Tasks a worker serves per second of work; `running_s` is how long each of the unfinished ones has run."""
        mean = self.seconds / self.weight if self.weight else 0.0
        overdue = sum(max(0.0, seconds - mean) for seconds in running_s)
        return max(self.weight, 1.0) / max(self.seconds + overdue, 1e-9)

    def fan_out(self) -> float:
        """Tasks one task becomes; one until anything is known."""
        return self.outputs / self.weight if self.weight else 1.0


def remaining_visits(live: Sequence[int], fan_out: Sequence[float], unlisted: int) -> list[float]:
    """Return for every group what it has and what upstream will still send it.

    live      [G]  tasks in each group that are not done
    fan_out   [G]  tasks one task of the group becomes
    unlisted       source partitions not pulled yet
    """
    visits = []
    arriving = float(unlisted)
    for here, factor in zip(live, fan_out, strict=True):
        visits.append(here + arriving)
        arriving = (here + arriving) * factor
    return visits
