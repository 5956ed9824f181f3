"""`Latency`: how long single tasks took in one stage, counted in a few slots that are the same for every stage and run.

Powers of four from a millisecond to a quarter of an hour: coarse, but counts add up over workers, stages and runs, and
a histogram of them is what Prometheus understands.
"""

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

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
                return BOUNDS[-1]  # nobody knows how much longer
            low = BOUNDS[slot - 1] if slot else 0.0
            return low + (BOUNDS[slot] - low) * max(0.0, wanted - before) / count
        before += count
    return BOUNDS[-1]
