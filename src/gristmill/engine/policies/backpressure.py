"""Memory, in bytes: who may start another task.

Held bytes are the inputs of tasks that wait or run; reserved bytes are what running tasks are expected to need beyond
that: their working copies and their outputs. Sending a task of group g needs

    held + reserved + need(task) + sum over later groups j of max(0, lane_j - held_j)  <=  limit

where lane_j is the largest task group j has seen. Memory is thus taken in one direction, towards the sink, which frees
it: an upstream stage can never fill the room a downstream stage needs to make progress, so there is no deadlock. A task
too large for this runs alone, when nothing is left further on that could go first.
"""

from dataclasses import dataclass, field

FIRST_GUESS = 5.0  # bytes needed per input byte before anything is measured: parsed columns, a filtered copy, output
FORGET = 0.98  # the estimate is a maximum that fades, close to a p95 over the last fifty tasks


@dataclass
class MemoryBook:
    """The bytes of one node."""

    limit: int
    num_groups: int
    held: list[int] = field(init=False)  # per group: inputs waiting or running
    lane: list[int] = field(init=False)
    expansion: list[float | None] = field(init=False)
    reserved: dict[int, int] = field(default_factory=dict)  # task -> bytes
    reserved_total: int = 0

    def __post_init__(self) -> None:
        self.held = [0] * self.num_groups
        self.lane = [0] * self.num_groups
        self.expansion = [None] * self.num_groups

    def need(self, group: int, num_bytes: int) -> int:
        """Bytes a task of this size is expected to take beyond its input."""
        expansion = self.expansion[group]
        return int(num_bytes * (FIRST_GUESS if expansion is None else expansion))

    def admits(self, group: int, num_bytes: int) -> bool:
        """Whether a task of this size may be sent now."""
        if self.reserved_total == 0 and not any(self.held[group + 1 :]):
            return True  # nothing runs and nothing waits further on: alone it may be as large as it is
        if num_bytes == 0:
            return sum(self.held) <= self.limit  # costs nothing itself, but what it makes needs room to wait
        later = sum(
            max(0, lane - held) for lane, held in zip(self.lane[group + 1 :], self.held[group + 1 :], strict=True)
        )
        return sum(self.held) + self.reserved_total + self.need(group, num_bytes) + later <= self.limit

    def queue(self, group: int, num_bytes: int) -> None:
        """A task waits with its input in memory."""
        self.held[group] += num_bytes
        self.lane[group] = max(self.lane[group], num_bytes)

    def send(self, task: int, group: int, num_bytes: int) -> None:
        """A task runs, or is about to."""
        # At least a byte, so that "nothing runs" is the same as "nothing is reserved" even for empty tasks.
        self.reserved[task] = max(1, self.need(group, num_bytes))
        self.reserved_total += self.reserved[task]

    def unsend(self, task: int) -> None:
        """A task came back, or ended: its reservation is free."""
        self.reserved_total -= self.reserved.pop(task, 0)

    def consume(self, group: int, num_bytes: int) -> None:
        """The input of a finished task is gone."""
        self.held[group] -= num_bytes

    def observe(self, group: int, num_bytes: int, peak_bytes: int) -> None:
        """Learn how many bytes a task of `num_bytes` really took."""
        if num_bytes > 0:
            seen = peak_bytes / num_bytes
            before = self.expansion[group]
            self.expansion[group] = seen if before is None else max(seen, before * FORGET)
