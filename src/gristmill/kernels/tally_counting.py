"""Counting the values of one rule: slots, sums and extremes of those that are refused and of those that are kept.

Nearly all values are kept, in range and far from any bound. So all are counted in one loop without unpredictable
branches, and the few that are refused are counted again and subtracted: counts and sums are whole numbers.

Arrays are those of `tally.py`.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import LAST, NEAREST, NOT_A_NUMBER, PER_OCTAVE, SLOTS
from gristmill.kernels.tally_windows import Doubles, Given, Longs, OfRule, Windows, choose_kept, consider
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import ONES, Bytes, bits_of, load8

_FIRST = 982 * PER_OCTAVE - 1  # what lies below slot 0 in the bits: exponents under 2 to the power of -41
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITE = np.int64(0x7FF0000000000000)
_BEYOND = np.int64((_FIRST + LAST) << 47)  # where slot LAST begins
_UNIT = 4294967296.0  # fractions are counted in 2 to the power of -32

Totals = tuple[Longs, Doubles, NDArray[np.uint32]]  # sums, extremes, ends
Taking = tuple[int, NDArray[np.int16], NDArray[np.int32]]  # room, slots, taken


@inline
def _slot(value: float, magnitude: int) -> int:
    """The slot of a value, whose bits without the sign are `magnitude`."""
    slot = min(max((magnitude >> 47) - _FIRST, 1 if magnitude != 0 else 0), LAST)
    return slot if value > 0 else -slot


@inline
def _slot_in_range(bits: np.int64) -> np.int64:
    """The same for a value in range, given by its bits, without any branch."""
    magnitude, sign = bits & _MAGNITUDE, bits >> 63
    slot = max((magnitude >> 47) - _FIRST, np.int64(magnitude != 0))
    return (slot ^ sign) - sign


@inline
def _put(number: int, room: int, slot: int, count: int, slots: NDArray[np.int16], taken: NDArray[np.int32]) -> int:
    """Note how many values a slot has, if it has any."""
    if count != 0 and number < room:
        slots[number], taken[number] = slot, count
        number += 1
    return number


@inline
def _take_counts(
    first: float,
    last: float,
    counts: NDArray[np.int32],
    at: int,
    number: int,
    taking: Taking,
) -> int:
    """Take the counts from `at` on, leaving zeros: the slot of 0, and those from the least to the greatest value."""
    room, slots, taken = taking
    zero = at + LAST
    number = _put(number, room, 0, counts[zero], slots, taken)
    counts[zero] = 0
    if first <= last:
        begin, end = _slot(first, bits_of(first) & _MAGNITUDE), _slot(last, bits_of(last) & _MAGNITUDE)
        for slot in range(begin, end + 1):
            number = _put(number, room, slot, counts[zero + slot], slots, taken)
            counts[zero + slot] = 0
    return number


@inline
def _count_all(
    begin: int, end: int, values: Doubles, kept: Bytes, counts: NDArray[np.int32]
) -> tuple[np.int64, np.int64, float, float, int]:
    """Count values in range, kept or refused. Return their sum, the extremes of those that are kept and not zero, and
    how many values are out of range.

    Zeros and refused values come unpredictably. For the extremes they are replaced by what is not a number, which takes
    less time than a mispredicted branch.
    """
    first, last = np.inf, -np.inf
    wholes = fractions = np.int64(0)
    strange = 0
    for place in range(begin, end):
        value = values[place]
        bits = bits_of(value)
        magnitude = bits & _MAGNITUDE
        if magnitude >= _BEYOND:
            strange += 1
            continue
        counts[LAST + _slot_in_range(bits)] += 1
        whole = np.floor(value)
        wholes += np.int64(whole)
        fractions += np.int64(np.rint((value - whole) * _UNIT))
        own = value if np.int64(magnitude != 0) & kept[place] != 0 else np.nan
        first = own if own < first else first
        last = own if own > last else last
    return wholes, fractions, first, last, strange


@inline
def _count_refused(
    of_rule: OfRule,
    given: Given,
    at_low: int,
    counts: NDArray[np.int32],
    windows: Windows,
) -> tuple[np.int64, np.int64, float, float]:
    """Count refused values in range, in slots after those of all, and subtract them from those; choose the nearest.

    Few are refused, so values are skipped eight at a time.
    """
    begin, end, low, high, offset = of_rule
    values, kept, current, keys = given
    first, last = np.inf, -np.inf
    wholes = fractions = np.int64(0)
    place = begin
    while place < end:
        if place + 8 <= end and load8(kept, place) == ONES:
            place += 8
            continue
        if kept[place] == 0:
            value = values[place]
            bits = bits_of(value)
            if (bits & _MAGNITUDE) < _BEYOND:
                slot = LAST + _slot_in_range(bits)
                counts[slot] -= 1
                counts[SLOTS + slot] += 1
                whole = np.floor(value)
                wholes += np.int64(whole)
                fractions += np.int64(np.rint((value - whole) * _UNIT))
                if (bits & _MAGNITUDE) != 0:
                    first, last = min(first, value), max(last, value)
            if (bits & _MAGNITUDE) < _INFINITE and not (np.isinf(low) and np.isinf(high)):
                row = current[place - begin] + offset
                consider(place, value, row, keys[row], (low, high), at_low, windows)
        place += 1
    return wholes, fractions, first, last


@inline
def _count_beyond(
    wanted: int, begin: int, end: int, values: Doubles, kept: Bytes, counts: NDArray[np.int32], at: int
) -> tuple[int, float, float]:
    """Count what is out of range of one side; return how many are not a number, and the extremes of the others."""
    first, last = np.inf, -np.inf
    strange = 0
    for place in range(begin, end):
        value = values[place]
        magnitude = bits_of(value) & _MAGNITUDE
        if kept[place] != wanted or magnitude < _BEYOND:
            continue
        if magnitude > _INFINITE:
            strange += 1
        else:
            counts[at + LAST + _slot(value, magnitude)] += 1
            first, last = min(first, value), max(last, value)
    return strange, first, last


@part
def count_rule(
    rule: int,
    number: int,
    at_low: int,
    of_rule: OfRule,
    given: Given,
    counts: NDArray[np.int32],
    totals: Totals,
    taking: Taking,
    windows: Windows,
) -> int:
    """Count the values of a rule; `at_low` is the last place of the window of refused ones at the lower bound."""
    begin, end, low, high, _ = of_rule
    values, kept = given[0], given[1]
    sums, extremes, ends = totals
    room, slots, taken = taking
    wholes, fractions, first, last, strange = _count_all(begin, end, values, kept, counts)
    less_wholes, less_fractions, least, most = _count_refused(of_rule, given, at_low, counts, windows)
    if not (np.isinf(low) and np.isinf(high)):
        choose_kept(of_rule, given, at_low + NEAREST, windows)
    sums[4 * rule], sums[4 * rule + 1] = less_wholes, less_fractions
    sums[4 * rule + 2], sums[4 * rule + 3] = wholes - less_wholes, fractions - less_fractions
    for side in range(2):
        at = SLOTS * (1 - side)
        lowest, highest = (first, last) if side else (least, most)
        if strange > 0:
            missing, beyond_first, beyond_last = _count_beyond(side, begin, end, values, kept, counts, at)
            lowest, highest = min(lowest, beyond_first), max(highest, beyond_last)
            number = _put(number, room, NOT_A_NUMBER, missing, slots, taken)
        has_zeros = counts[at + LAST] != 0
        extremes[4 * rule + 2 * side] = min(lowest, 0.0) if has_zeros else lowest
        extremes[4 * rule + 2 * side + 1] = max(highest, 0.0) if has_zeros else highest
        number = _take_counts(lowest, highest, counts, at, number, taking)
        ends[2 * rule + side] = number
    return number
