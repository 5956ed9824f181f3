"""How fast a worker of a group is, and how much a group still has to do.

Only useful time counts: a worker that waits says nothing about its speed. Of a task still running only the time beyond
the mean counts, so a straggler lowers the estimate before it has ended. (Counting all running time would lower it more
the more workers there are: their half-done tasks bring seconds and no completions.) Old completions
fade, so that the estimate follows a change within about fifty of them, or within 20 s if that is longer.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from gristmill.engine.events import Crumb
from gristmill.metrics.pace import Latency

MEMORY = 50  # completions an estimate rests on, at least
MEMORY_S = 20.0  # and the completions of this many seconds: with many workers fifty come in no time
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
        """Return the rate of a group not yet seen at work in this run."""
        if prior is None:
            return cls()
        seconds, outputs = MEASURED / prior.rate, MEASURED * prior.fan_out
        return cls(weight=MEASURED, seconds=seconds, outputs=outputs, has_prior=True)

    def add(self, seconds: float, outputs: int, *, workers: int = 1) -> None:
        """Learn from a task that took `seconds` and became `outputs` tasks, while `workers` were at work."""
        self.completions += 1
        mean = self.seconds / self.weight if self.weight else seconds
        # A task much longer than usual may be the first of many: it makes earlier ones count less.
        memory = workers * MEMORY_S / max(mean, seconds, 1e-9)
        fade = 1 - 1 / (memory if memory > MEMORY else MEMORY)
        self.weight = self.weight * fade + 1
        self.seconds = self.seconds * fade + seconds
        self.outputs = self.outputs * fade + outputs

    @property
    def is_known(self) -> bool:
        """Whether there is enough evidence to believe it."""
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


# `GroupBook`: what the workers of one group did with their time, and what one task of it was like.


class GroupBook(msgspec.Struct):
    """Worker-seconds and tasks of one group. `units` are what one worker occupies, of CPUs and of GPUs."""

    units: tuple[int, int] = (0, 0)
    setup_s: float = 0.0
    ending_s: float = 0.0  # with nothing left to do, until the process is gone
    busy_s: float = 0.0  # holding tasks: useful, wasted, blocked in the middle of one, or waiting for a message
    useful_s: float = 0.0
    wasted_s: float = 0.0
    starved_s: float = 0.0
    blocked_s: float = 0.0
    blocked_busy_s: float = 0.0  # of busy_s
    least_setup_s: float = 0.0  # the shortest set-up of a worker
    starts: int = 0  # workers that became ready
    tasks: int = 0
    outputs: int = 0
    output_bytes: int = 0
    squares: float = 0.0  # of the seconds of a task
    latencies: list[Latency] = []  # of every stage of the group
    retries: dict[int, int] = {}  # tasks that are tried again after a failure, by the stage they failed in
    losses: dict[tuple[int, str], int] = {}  # workers that died, by the stage they were in and `loss_kind`
    recycles: int = 0  # workers replaced because they were old, large or much used
    most_workers: int = 0
    most_rss_bytes: int = 0  # of one worker

    def lost(self, kind: str, crumb: Crumb | None = None) -> None:
        """A worker has died in one of the stages: in the first, if that is unknown."""
        key = (0 if crumb is None else crumb.stage, kind)
        self.losses[key] = self.losses.get(key, 0) + 1

    def retried(self, stage: int = 0) -> None:
        """A task is tried again because it failed in one of the stages."""
        self.retries[stage] = self.retries.get(stage, 0) + 1

    def held(self, rss_bytes: int) -> None:
        """A worker has held this much memory."""
        self.most_rss_bytes = max(self.most_rss_bytes, rss_bytes)

    def ready(self, setup_s: float) -> None:
        """A worker has finished its set-up."""
        self.least_setup_s = min(setup_s, self.least_setup_s) if self.starts else setup_s
        self.starts += 1

    def finished(self, useful_s: float, held_s: float, outputs: int, output_bytes: int) -> None:
        """A task is done; `held_s` of its time it waited for the next group."""
        self.tasks += 1
        self.useful_s += useful_s
        self.blocked_busy_s += held_s
        self.squares += useful_s * useful_s
        self.outputs += outputs
        self.output_bytes += output_bytes

    def came_to_nothing(self, seconds: float) -> None:
        """Work that counted as useful has to be done again."""
        self.useful_s -= seconds
        self.wasted_s += seconds

    def split(self, running_s: float = 0.0) -> dict[str, float]:
        """Worker-seconds by what they were spent on; `running_s` is how long unfinished tasks have been running."""
        at_work = self.useful_s + running_s + self.wasted_s + self.blocked_busy_s
        return {
            "useful": self.useful_s + running_s,
            "setup": self.setup_s + self.ending_s,
            "starved": self.starved_s,
            "blocked": self.blocked_s + self.blocked_busy_s,
            "wasted": self.wasted_s,
            "scheduler": max(0.0, self.busy_s - at_work),
        }

    def utilisation(self) -> float:
        """The useful share of the time its workers were there."""
        split = self.split()
        total = sum(split.values())
        return split["useful"] / total if total else 0.0

    def sigma(self) -> float:
        """The sigma of a log-normal distribution that varies as much as the seconds of these tasks."""
        if self.tasks < 2 or self.useful_s <= 0:
            return 0.0
        mean = self.useful_s / self.tasks
        return math.sqrt(math.log(max(1.0, self.squares / self.tasks / mean**2)))


# How far a group may run ahead of the next one, in seconds of the next one's work.
#
# What limits data in flight is memory, in bytes (`dispatch.MemoryBook`). This is the other limit: a queue that lasts
# longer than a change takes is of no use. A change means starting a worker of the next group, so the queue has to last
# for that. While the first of them start that time is unknown, and a pause would only leave this group's workers idle:
# they go on.

MAX_BACKLOG_S = 5.0
SETUPS = 2.0  # starts of a worker the queue has to last for: a change of plan, and the one after it
MAX_UNMEASURED = 20_000  # tasks; each costs the driver about a kilobyte


def is_far_ahead(queued: int, *, workers: int, batch_size: int, mean_service_s: float | None, setup_s: float) -> bool:
    """Whether the tasks queued for a group with this many workers are enough for the group before it to pause."""
    handed_out_soon = 2 * max(8, workers * batch_size)
    if queued <= handed_out_soon:
        return False
    if mean_service_s is None:
        return queued > max(MAX_UNMEASURED, handed_out_soon)
    return queued * mean_service_s / max(1, workers) > MAX_BACKLOG_S + SETUPS * setup_s
