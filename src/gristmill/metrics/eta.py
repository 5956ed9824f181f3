"""`Eta`: how long a run still takes, from how fast it went lately, and how sure that is.

The last 30 samples of what is done, a second or a sixtieth of the run apart, give a speed and how much it varies. What
is left at that speed is the estimate. It is wrong for two reasons, and the interval allows for both: the speed was
measured over a while only, and what comes will vary as much as what was. Work comes in partitions and a run has phases,
so neighbouring samples are not independent: the variation is also taken over two and four of them together, and the
greatest counts.
"""

import math
from collections import deque
from typing import NamedTuple

SAMPLES = 30
LEAST_S, PARTS = 1.0, 60
LEAST_INCREASES = 3  # samples in which anything was done, before anything is said
WIDTH = 1.65  # deviations to each side: nine in ten of what is normal lie within
LONGER = 1.5  # than the longest so far the longest of all may be
LEAST_SHARE = 0.03  # of the estimate: nobody knows better how the last partitions fall


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
        """So much is done after so many seconds. Nothing counts before the first is done: workers were starting."""
        if not self._samples and not done:
            return
        if self._samples and elapsed_s - self._samples[-1][0] < max(LEAST_S, elapsed_s / PARTS):
            return
        self._samples.append((elapsed_s, done))

    def estimate(self, elapsed_s: float, left: float, longest_s: float = 0.0) -> Estimate | None:
        """How long `left` still takes; None if too little is known. It counts down between two samples.

        `longest_s`: how long the longest way of a single partition through the run was so far.
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
        # The last partition to begin may be like the longest so far, with nobody else at work; or longer still.
        last_s = max(LONGER * longest_s, max(step[1] for step in steps) / speed) if left > 0 else 0.0
        spread = max(_variation(steps, speed, size) for size in (1, 2, 4))
        deviation = math.sqrt(spread * (left_s + left_s**2 / seconds)) / speed
        margin = max(WIDTH * deviation, LEAST_SHARE * left_s)
        return Estimate(left_s, max(0.0, left_s - margin), left_s + margin + last_s)


def _variation(steps: list[tuple[float, float]], speed: float, size: int) -> float:
    """How much what is done in a second varies: squares of what steps of so many samples were off, by their seconds."""
    joined = [steps[start : start + size] for start in range(len(steps) % size, len(steps), size)]
    if len(joined) < 2:
        return 0.0
    off = [(sum(step[1] for step in part) - speed * sum(step[0] for step in part)) ** 2 for part in joined]
    seconds = sum(step[0] for part in joined for step in part)
    return sum(off) / seconds * len(joined) / (len(joined) - 1)
