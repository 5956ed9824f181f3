"""How fast a run goes: how long tasks take, what a run waits for, when it will end, and the most it ever used."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

BOUNDS = (0.001, 0.004, 0.016, 0.063, 0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)  # upper ends, in seconds, inclusive
NUM_SLOTS = len(BOUNDS) + 1  # the last is for whatever took longer


class Latency(msgspec.Struct):
    """Tasks by how long they took: `counts[i]` of them at most `BOUNDS[i]` seconds and longer than the bound before."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * NUM_SLOTS)
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one task. The scheduler does this for every stage of every task: a bisection, and nothing else."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.sum_s += seconds


def quantile(counts: Sequence[int], share: float) -> float | None:
    """Return the time within which a share of the tasks was done, evenly spread within its slot; None without tasks.

    >>> quantile([0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0.5)
    0.01
    """
    wanted = share * sum(counts)
    if not sum(counts):
        return None
    before = 0
    for slot, count in enumerate(counts):
        if count and before + count >= wanted:
            if slot == len(BOUNDS):
                return BOUNDS[-1]  # how much longer is not known
            low = BOUNDS[slot - 1] if slot else 0.0
            return low + (BOUNDS[slot] - low) * max(0.0, wanted - before) / count
        before += count
    return BOUNDS[-1]


SAMPLES = 30
LEAST_S, PARTS = 1.0, 60
LEAST_INCREASES = 3  # samples in which anything was done, before an estimate is given
WIDTH = 1.65  # deviations to each side: nine in ten of what is normal lie within
LONGER = 1.5  # times the longest so far: what the longest of all may take
LEAST_SHARE = 0.03  # of the estimate: how the last partitions fall cannot be known better


class Estimate(NamedTuple):
    """Seconds left, and the ends of an interval that holds the truth nine times out of ten."""

    left_s: float
    low_s: float
    high_s: float


class Eta:
    """Give it what is done, as often as you like; ask what is left."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES + 1)

    def add(self, elapsed_s: float, done: float) -> None:
        """Note how much is done by now. Time before the first is done does not count: workers were starting."""
        if not self._samples and not done:
            return
        if self._samples and elapsed_s - self._samples[-1][0] < max(LEAST_S, elapsed_s / PARTS):
            return
        self._samples.append((elapsed_s, done))

    def estimate(self, elapsed_s: float, left: float, longest_s: float = 0.0) -> Estimate | None:
        """How long `left` still takes; None if too little is known. It counts down between two samples.

        `longest_s`: the longest that a single partition has taken through the run so far.
        """
        if len(self._samples) < 2:
            return None
        steps = [
            (now[0] - before[0], now[1] - before[1])
            for before, now in zip(list(self._samples), list(self._samples)[1:], strict=False)
        ]
        seconds, done = sum(step[0] for step in steps), sum(step[1] for step in steps)
        if sum(step[1] > 0 for step in steps) < LEAST_INCREASES:
            return None
        speed = done / seconds
        since = elapsed_s - self._samples[-1][0]
        left_s = max(0.0, left / speed - since)
        # The last partition to begin may take as long as the longest so far, with no other at work; or longer still.
        last_s = max(LONGER * longest_s, max(step[1] for step in steps) / speed) if left > 0 else 0.0
        spread = max(_variation(steps, speed, size) for size in (1, 2, 4))
        deviation = math.sqrt(spread * (left_s + left_s**2 / seconds)) / speed
        margin = max(WIDTH * deviation, LEAST_SHARE * left_s)
        return Estimate(left_s, max(0.0, left_s - margin), left_s + margin + last_s)


def _variation(steps: list[tuple[float, float]], speed: float, size: int) -> float:
    """How much the amount done in a second varies: squared deviations of steps of `size` samples, by their seconds."""
    joined = [steps[start : start + size] for start in range(len(steps) % size, len(steps), size)]
    if len(joined) < 2:
        return 0.0
    off = [(sum(step[1] for step in part) - speed * sum(step[0] for step in part)) ** 2 for part in joined]
    seconds = sum(step[0] for part in joined for step in part)
    return sum(off) / seconds * len(joined) / (len(joined) - 1)


BUSY_SHARE = 0.5  # of its workers: with fewer at work a group is not what a run waits for


def slowest(snapshot: RunSnapshot) -> str:
    """The stage that decides how fast a run goes, and how that shows; "" if it cannot be told.

    Of the groups whose workers are busy it is the one with most work waiting; of its stages the one that takes longest.
    """
    groups: dict[int, list[StageSnapshot]] = {}
    for stage in snapshot.stages:
        groups.setdefault(stage.group, []).append(stage)
    busy = [stages for stages in groups.values() if _share(stages[0]) >= BUSY_SHARE]
    if not busy:
        return ""
    stages = max(busy, key=lambda stages: (stages[0].queue_s, _share(stages[0]), sum(s.process_s for s in stages)))
    worst, total = max(stages, key=lambda stage: stage.process_s), sum(stage.process_s for stage in stages)
    first = stages[0]
    part = f" takes {worst.process_s / total:.0%} of the time of its workers," if len(stages) > 1 and total else ":"
    waiting = f", {first.queue_s:.0f} s of work waiting" if first.queue_s >= 1 else ""
    return f"slowest: {worst.name}{part} {first.busy_workers} of {first.workers} busy{waiting}"


def _share(stage: StageSnapshot) -> float:
    return stage.busy_workers / stage.workers if stage.workers else 0.0


class Peaks:
    """Remembers the greatest of what it has seen. It has not seen workers that came and went between two
    snapshots: what the scheduler has kept of those, in the snapshot's own peaks, counts too.
    """

    def __init__(self) -> None:
        self.memory_bytes = 0
        self.data_bytes = 0
        self._stages: dict[str, tuple[int, int, int]] = {}

    def seen(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Take in a snapshot and return it with the peaks up to now."""
        self.memory_bytes = max(self.memory_bytes, snapshot.memory_bytes, snapshot.peak_memory_bytes)
        self.data_bytes = max(self.data_bytes, snapshot.data_in_flight_bytes, snapshot.peak_data_bytes)
        return msgspec.structs.replace(
            snapshot,
            peak_memory_bytes=self.memory_bytes,
            peak_data_bytes=self.data_bytes,
            stages=tuple(self._stage(stage) for stage in snapshot.stages),
        )

    def _stage(self, stage: StageSnapshot) -> StageSnapshot:
        now = (
            max(stage.workers, stage.peak_workers),
            max(stage.memory_bytes, stage.peak_memory_bytes),
            max(stage.largest_worker_bytes, stage.peak_worker_bytes),
        )
        most = self._stages[stage.name] = _greatest(self._stages.get(stage.name, (0, 0, 0)), now)
        workers, memory, largest = most
        return msgspec.structs.replace(stage, peak_workers=workers, peak_memory_bytes=memory, peak_worker_bytes=largest)


def _greatest(before: tuple[int, int, int], now: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(before[0], now[0]), max(before[1], now[1]), max(before[2], now[2])
