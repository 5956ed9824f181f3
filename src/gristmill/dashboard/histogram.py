"""`histogram`: the slots of a tally as a few bars that can be drawn, kept and refused apart.

Slots are finer than bars at small values and coarser at large ones, so the documents of a slot are spread evenly over
its width. Every bar has a whole number of documents, and all bars together have all of them.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import msgspec

from gristmill.metrics.observations import Side
from gristmill.metrics.tally import NOT_A_NUMBER, Distribution, Slots, edge_of

BARS = 48
EDGE_SHARE = 0.002  # of the documents may lie beyond the drawing on each side: one long tail would flatten the rest
LOGARITHMIC_FROM = 30.0  # times the median: from then on a drawing with equal steps shows one tall bar and a long floor


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """Documents with values from `low` up to `high`. The first and the last bar also have what lies beyond them."""

    low: float
    high: float
    kept: int
    refused: int


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """Bars of equal width, on a scale that is logarithmic where values differ by orders of magnitude."""

    logarithmic: bool = False
    bars: tuple[Bar, ...] = ()


def histogram(kept: Side, refused: Side, thresholds: Iterable[float]) -> Histogram:
    """Return the bars of both sides; the thresholds are inside the drawing if they are anywhere near the values."""
    both = _numbers(kept.slots)
    for slot, count in _numbers(refused.slots).items():
        both[slot] = both.get(slot, 0) + count
    if not both:
        return Histogram()
    values = Distribution(both)
    low, high = values.quantile(EDGE_SHARE), values.quantile(1.0 - EDGE_SHARE)
    high = max(_end(slot) for slot in both if edge_of(slot) <= high)
    median = values.quantile(0.5)
    positive = min((edge_of(slot) for slot in both if slot > 0 and edge_of(slot) >= low), default=0.0)
    logarithmic = low >= 0 and positive > 0 and median > 0 and high > LOGARITHMIC_FROM * median
    low, high = _with_thresholds(positive if logarithmic else low, high, thresholds)
    if logarithmic and low <= 0:
        low = positive
    edges = _edges(low, high, logarithmic=logarithmic)
    sides = [_spread(_numbers(side.slots), edges) for side in (kept, refused)]
    return Histogram(
        logarithmic=logarithmic,
        bars=tuple(
            Bar(low=_rounded(edges[at]), high=_rounded(edges[at + 1]), kept=sides[0][at], refused=sides[1][at])
            for at in range(BARS)
        ),
    )


def _numbers(slots: Slots) -> Slots:
    return {slot: count for slot, count in slots.items() if slot != NOT_A_NUMBER}


def _end(slot: int) -> float:
    """The upper end of a slot; `edge_of` gives the end nearest to zero."""
    return edge_of(slot + 1) if slot > 0 else edge_of(slot)


def _begin(slot: int) -> float:
    return edge_of(slot) if slot >= 0 else edge_of(slot - 1)


def _with_thresholds(low: float, high: float, thresholds: Iterable[float]) -> tuple[float, float]:
    """Make room for thresholds that are no further from the values than the values are from each other."""
    width = high - low or abs(high) or 1.0
    for threshold in thresholds:
        if math.isfinite(threshold) and low - width <= threshold <= high + width:
            low, high = min(low, threshold), max(high, threshold + width / BARS)
    return low, high


def _edges(low: float, high: float, *, logarithmic: bool) -> list[float]:
    if high <= low:
        high = low + (abs(low) / 8 or 1.0)
    inwards: Callable[[float], float] = math.log2 if logarithmic else float
    start, stop = inwards(low), inwards(high)
    places = [start + (stop - start) * at / BARS for at in range(BARS + 1)]
    return [math.exp2(place) if logarithmic else place for place in places]


def _spread(slots: Slots, edges: Sequence[float]) -> list[int]:
    """Whole documents by bar. Sums up to each edge are rounded, so that nothing is lost or counted twice."""
    up_to = [0.0] * (BARS + 1)
    for slot, count in sorted(slots.items()):
        begin, end = (0.0, 0.0) if slot == 0 else (_begin(slot), _end(slot))
        for at in range(1, BARS):
            edge = edges[at]
            if end <= edge and begin < edge:
                up_to[at] += count
            elif begin < edge:
                up_to[at] += count * (edge - begin) / (end - begin)
    whole = [0, *(round(amount) for amount in up_to[1:BARS]), sum(slots.values())]
    return [after - before for before, after in itertools.pairwise(whole)]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
