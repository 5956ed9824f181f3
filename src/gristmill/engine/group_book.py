"""`GroupBook`: what the workers of one group did with their time, and what one task of it was like."""

import math

import msgspec


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
        """Work that was useful has to be done again."""
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
