"""Counting what was measured: values of several rules at once, into slots, sums and the nearest to each bound.

Twice: by compiled code, all rules in one call, and in numpy for a worker that has seen little yet, because loading
compiled code takes 0.1 s. Both give the same; a test holds them to it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels import tally_layout as layout
from gristmill.kernels.arrow_arrays import is_null, numbers_of
from gristmill.metrics.observation_files import PartSide
from gristmill.metrics.tally import BEYOND, slot_of, tallied
from gristmill.stages.compiled_kernel import CompiledKernel

_count_measures = CompiledKernel("tally", "count_measures")
_take_counts = CompiledKernel("tally", "take_counts")
_FRACTION_BITS = 32

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


class Values(NamedTuple):
    """The values of all rules, one rule after another: those of rule r are [firsts[r], firsts[r + 1])."""

    numbers: Doubles
    kept: NDArray[np.bool_]
    rows: Longs  # which document each is of
    firsts: Longs
    bounds: Doubles  # low and high of each rule; not a number where there is none


class Windows(NamedTuple):
    """What is nearest so far: [4 R, 8] each, in order; where there is nobody, the distance is infinite."""

    distances: Doubles
    keys: NDArray[np.uint64]


class Counted(NamedTuple):
    """What became of the values: two sides of each rule, refused and kept, and four windows.

    A window (low refused, low kept, high refused, high kept) has the numbers of the values nearest to that bound, the
    nearest first.
    """

    sides: list[PartSide]
    nearest: Longs  # [4 R, 8], negative for none


def numbers_in(values: Any) -> Doubles | Longs | None:
    """Return what a stage measured as numbers, with NaN for what is missing; None if these are not numbers.

    Of a score of several parts the last that is a number counts: of a language, how sure the model is.
    """
    if isinstance(values, np.ndarray):
        return values.astype(np.float64) if values.dtype.kind in "fiub" and values.dtype not in _EXACT else values
    if isinstance(values, pa.ChunkedArray):
        parts = [numbers_in(chunk) for chunk in values.chunks]
        known = [part for part in parts if part is not None]
        return np.concatenate([np.empty(0), *known]) if len(known) == len(parts) else None
    if isinstance(values, pa.Array):
        return _of_arrow(values)
    try:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


_EXACT = (np.dtype(np.float64), np.dtype(np.int64))


def _of_arrow(array: pa.Array) -> Doubles | None:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_of_arrow(part) for part in array.flatten()]
        return next((part for part in reversed(parts) if part is not None), None)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    array = array.cast(pa.float64(), safe=False)
    missing = is_null(pa.chunked_array([array]))
    plain = (
        array
        if not array.null_count
        else pa.Array.from_buffers(pa.float64(), len(array), [None, array.buffers()[1]], offset=array.offset)
    )
    numbers = numbers_of(plain).astype(np.float64)
    numbers[missing] = np.nan
    return numbers


class Counter:
    """Counts with compiled code, in memory that is used again."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int32)

    def count(self, values: Values, keys: NDArray[np.uint64], known: Windows | None = None) -> Counted:
        """Count the values of all rules in one call; what is further away than what is `known` is left out."""
        rules = len(values.firsts) - 1
        if len(self._counts) < 2 * rules * layout.SLOTS:
            self._counts = np.zeros(2 * rules * layout.SLOTS, np.int32)
        has = (~np.isnan(values.bounds.reshape(rules, 2))) @ np.array([layout.HAS_LOW, layout.HAS_HIGH])
        sums, extremes = np.zeros(4 * rules, np.int64), np.tile([np.inf, -np.inf], 2 * rules)
        windows = 4 * rules * layout.NEAREST
        if known is None:
            distances, found = np.full(windows, np.inf), np.zeros(windows, np.uint64)
        else:
            distances, found = known.distances.ravel(), known.keys.ravel()
        nearest = np.where(np.isinf(distances), layout.NOBODY, layout.ELSEWHERE)
        _count_measures(
            *(rules, values.firsts, values.numbers, values.numbers.view(np.int64), values.kept.view(np.uint8)),
            *(values.rows, keys, values.bounds, has, self._counts, sums, extremes, distances, found, nearest),
        )
        return Counted(self._sides(rules, sums, extremes, len(values.numbers)), nearest.reshape(4 * rules, -1))

    def _sides(self, rules: int, sums: Longs, extremes: Doubles, number: int) -> list[PartSide]:
        slots, counts = np.empty(number, np.int64), np.empty(number, np.int64)
        ends = np.empty(2 * rules, np.int64)
        _take_counts(2 * rules, number, extremes, extremes.view(np.int64), self._counts, slots, counts, ends)
        bounds = [0, *ends.tolist()]
        differences = np.diff(slots[: bounds[-1]], prepend=0)
        begins = np.array(bounds[:-1])[ends > bounds[:-1]]
        differences[begins] = slots[begins]
        listed, number_of = differences.tolist(), counts[: bounds[-1]].tolist()
        totals, ranges = sums.tolist(), extremes.tolist()
        return [
            PartSide(
                *(listed[first:end], number_of[first:end]),
                (totals[2 * side] << _FRACTION_BITS) + totals[2 * side + 1],
                *(ranges[2 * side : 2 * side + 2] if ranges[2 * side] <= ranges[2 * side + 1] else (None, None)),
            )
            for side, (first, end) in enumerate(pairwise(bounds))
        ]


def count_plainly(values: Values, keys: NDArray[np.uint64]) -> Counted:
    """Count without compiled code."""
    sides, nearest = [], []
    for rule, (first, end) in enumerate(pairwise(values.firsts.tolist())):
        low, high = values.bounds[2 * rule : 2 * rule + 2]
        for wanted in (False, True):
            places = np.flatnonzero(values.kept[first:end] == wanted) + first
            numbers = values.numbers[places]
            sides.append(_side(numbers))
            for bound, other in ((low, high), (high, low)):
                own = keys[values.rows[places]]
                nearest.append(_nearest(places, numbers, own, bound, other, is_high=bound is high))
    # As the kernel has them: of each rule low refused, low kept, high refused, high kept.
    order = [4 * rule + place for rule in range(len(sides) // 2) for place in (0, 2, 1, 3)]
    windows = np.full((len(nearest), layout.NEAREST), -1)
    for row, place in enumerate(order):
        windows[row, : len(nearest[place])] = nearest[place]
    return Counted(sides, windows)


def _side(numbers: Doubles) -> PartSide:
    slots = dict(sorted(tallied(numbers).items()))
    plain = numbers[~np.isnan(numbers)]
    in_range = plain[np.array([abs(slot_of(value)) < BEYOND for value in plain.tolist()], np.bool_)]
    whole = np.floor(in_range)
    fractions = np.rint((in_range - whole) * 2.0**_FRACTION_BITS).astype(np.int64)
    total = (int(whole.astype(np.int64).sum()) << _FRACTION_BITS) + int(fractions.sum())
    differences = np.diff(np.array([0, *slots], np.int64)).tolist()
    least, most = (float(plain.min()), float(plain.max())) if len(plain) else (None, None)
    return PartSide(differences, list(slots.values()), total, least, most)


def _nearest(
    places: Longs, numbers: Doubles, keys: NDArray[np.uint64], bound: float, other: float, *, is_high: bool
) -> Sequence[int]:
    if np.isnan(bound):
        return []
    distance, further = np.abs(numbers - bound), np.abs(numbers - other)
    mine = np.isfinite(distance) & (np.isnan(further) | (distance < further if is_high else distance <= further))
    order = np.lexsort((keys[mine], distance[mine]))
    chosen: dict[int, int] = {}
    for at in order.tolist():
        chosen.setdefault(int(keys[mine][at]), int(places[mine][at]))
        if len(chosen) == layout.NEAREST:
            break
    return list(chosen.values())
