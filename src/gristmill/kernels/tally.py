"""Counting measures into the slots of `metrics/tally.py`, those of all rules in one call, and keys of texts.

A value's slot is read off its bits: eleven of the exponent and the first five of the fraction, which is 32 to an
octave. On the way go the least and the greatest value, the sum in fixed point, and which documents are nearest to a
bound.

Letters: R rules, V values of all rules, D documents of the batch, W windows (four a rule: low refused, low kept, high
refused, high kept). Arrays of `count_measures`:

    firsts     [R + 1]     where the values of a rule begin
    values     [V]         and `bits`, the same memory; `kept` 0 or 1, `rows` which document
    keys       [D]         of the documents
    bounds     [R, 2]      low, high; `has` which of them there are, HAS_LOW + HAS_HIGH
    counts     [R, 2, S]   refused, kept: to be zeros
    sums       [R, 2, 2]   of whole numbers, and of fractions in 2 to the power of -32: to be zeros
    extremes   [R, 2, 2]   least, greatest: to be infinite and minus infinite
    distances  [W, 8]      of the nearest, to be infinite; `found` their keys, `nearest` which values, to be NOBODY. Or
                           what is known from elsewhere, in order, with ELSEWHERE: what is further away is left out
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import (
    ELSEWHERE,
    HAS_HIGH,
    HAS_LOW,
    LAST,
    NEAREST,
    NOBODY,
    NOT_A_NUMBER,
    PER_OCTAVE,
    SLOTS,
)
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.sizes import TEXTS, greatest, sized
from gristmill.kernels.text.words_of_bytes import Bytes, load8

_FIRST = 982 * PER_OCTAVE - 1  # what lies below slot 0 in the bits: exponents under 2 to the power of -41
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITE = np.int64(0x7FF0000000000000)
_UNIT = 4294967296.0  # fractions are counted in 2 to the power of -32
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15))
_30, _27, _31, _8 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(8)

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Keys = NDArray[np.uint64]


@inline
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _30)) * _FACTORS[0]
    value = (value ^ (value >> _27)) * _FACTORS[1]
    return value ^ (value >> _31)


@sized(**TEXTS, keys=lambda documents: documents)
def text_keys(data: Bytes, starts: Longs, stops: Longs, documents: int, keys: Keys) -> None:
    """Give every text a number that is the same wherever the text is: of its first and last bytes and its length.

    All of a text would be read from memory once more for it. Two that agree in all this and differ in between count as
    one example, which costs nobody anything.

    keys  [D]
    """
    for d in range(documents):
        start, length = starts[d], stops[d] - starts[d]
        first = last = np.uint64(0)
        if length >= 8:
            first, last = load8(data, start), load8(data, stops[d] - 8)
        else:
            for place in range(length):
                first = (first << _8) | np.uint64(data[start + place])
        keys[d] = _mixed(_mixed(first + np.uint64(length) * _FACTORS[2]) + last)


@inline
def _slot(value: float, magnitude: int) -> int:
    if magnitude == 0:
        return 0
    slot = min(max((magnitude >> 47) - _FIRST, 1), LAST)
    return slot if value > 0 else -slot


@part
def _enter(
    window: int, distance: float, key: np.uint64, value_at: int, distances: Doubles, found: Keys, nearest: Longs
) -> None:
    """Put a document into a window, which is in order of distance and key and has each key once."""
    base = window * NEAREST
    place = NEAREST
    for other in range(NEAREST - 1, -1, -1):
        nearer = distances[base + other]
        if nearer < distance or (nearer == distance and found[base + other] <= key):
            break
        place = other
    for other in range(place):
        if found[base + other] == key and nearest[base + other] != NOBODY:
            # The same text, and as near or nearer. As near elsewhere: whoever adds up decides which of the two it is.
            if distances[base + other] == distance and nearest[base + other] == ELSEWHERE:
                nearest[base + other] = value_at
            return
    end = NEAREST - 1
    for other in range(place, NEAREST):
        if found[base + other] == key and nearest[base + other] != NOBODY:
            end = other  # the same text, and not as near
            break
    for other in range(end, place, -1):
        distances[base + other] = distances[base + other - 1]
        found[base + other] = found[base + other - 1]
        nearest[base + other] = nearest[base + other - 1]
    if place < NEAREST:
        distances[base + place], found[base + place], nearest[base + place] = distance, key, value_at


@sized(
    firsts=lambda rules: rules + 1,
    values=lambda firsts, rules: firsts[rules],
    bits=lambda firsts, rules: firsts[rules],
    kept=lambda firsts, rules: firsts[rules],
    rows=lambda firsts, rules: firsts[rules],
    keys=lambda rows, firsts, rules: greatest(rows, firsts[rules]) + 1,
    bounds=lambda rules: 2 * rules,
    has=lambda rules: rules,
    counts=lambda rules: 2 * rules * SLOTS,
    sums=lambda rules: 4 * rules,
    extremes=lambda rules: 4 * rules,
    distances=lambda rules: 4 * rules * NEAREST,
    found=lambda rules: 4 * rules * NEAREST,
    nearest=lambda rules: 4 * rules * NEAREST,
)
def count_measures(
    rules: int,
    firsts: Longs,
    values: Doubles,
    bits: Longs,
    kept: Bytes,
    rows: Longs,
    keys: Keys,
    bounds: Doubles,
    has: Longs,
    counts: NDArray[np.int32],
    sums: Longs,
    extremes: Doubles,
    distances: Doubles,
    found: Keys,
    nearest: Longs,
) -> None:
    """Count the values of all rules; the arrays are described above."""
    for rule in range(rules):
        bounded = has[rule]
        low = bounds[2 * rule] if bounded & HAS_LOW else np.inf
        high = bounds[2 * rule + 1] if bounded & HAS_HIGH else np.inf
        for side in range(2 * rule, 2 * rule + 2):
            # Of each side in a loop of its own: what is added to stays in registers.
            wanted = side & 1
            least, most = extremes[2 * side], extremes[2 * side + 1]
            wholes = fractions = np.int64(0)
            for place in range(firsts[rule], firsts[rule + 1]):
                if kept[place] != wanted:
                    continue
                magnitude = bits[place] & _MAGNITUDE
                if magnitude > _INFINITE:
                    counts[side * SLOTS + SLOTS - 1] += 1
                    continue
                value = values[place]
                slot = _slot(value, magnitude)
                counts[side * SLOTS + LAST + slot] += 1
                least, most = min(least, value), max(most, value)
                if slot != LAST and slot != -LAST:
                    whole = np.floor(value)
                    wholes += np.int64(whole)
                    fractions += np.int64(np.rint((value - whole) * _UNIT))
                if bounded and magnitude != _INFINITE:
                    to_low, to_high = abs(value - low), abs(value - high)
                    window = 4 * rule + wanted + (2 if to_high < to_low else 0)
                    distance, last = min(to_low, to_high), window * NEAREST + NEAREST - 1
                    if distance > distances[last]:
                        continue
                    key = keys[rows[place]]
                    # Measures that are whole numbers tie by the thousand at a threshold: most are out by their keys.
                    if distance < distances[last] or key <= found[last]:
                        _enter(window, distance, key, place, distances, found, nearest)
            extremes[2 * side], extremes[2 * side + 1] = least, most
            sums[2 * side] += wholes
            sums[2 * side + 1] += fractions


@sized(
    extremes=lambda sides: 2 * sides,
    bits=lambda sides: 2 * sides,
    counts=lambda sides: sides * SLOTS,
    slots=lambda room: room,
    taken=lambda room: room,
    ends=lambda sides: sides,
)
def take_counts(
    sides: int,
    room: int,
    extremes: Doubles,
    bits: Longs,
    counts: NDArray[np.int32],
    slots: Longs,
    taken: Longs,
    ends: Longs,
) -> int:
    """Take out what was counted, leaving zeros; return how many slots were not empty.

    extremes  [sides, 2]  least and greatest value: nothing was counted outside; and `bits`, the same memory
    slots     [room]      those of the first side, then of the next; `taken` what was in them
    ends      [sides]     where those of a side end
    """
    number = 0
    for side in range(sides):
        first, last = extremes[2 * side], extremes[2 * side + 1]
        if first <= last:
            begin = _slot(first, bits[2 * side] & _MAGNITUDE)
            end = _slot(last, bits[2 * side + 1] & _MAGNITUDE)
            for slot in range(begin, end + 1):
                place = side * SLOTS + LAST + slot
                if counts[place] != 0 and number < room:
                    slots[number], taken[number] = slot, counts[place]
                    counts[place] = 0
                    number += 1
        place = side * SLOTS + SLOTS - 1
        if counts[place] != 0 and number < room:
            slots[number], taken[number] = NOT_A_NUMBER, counts[place]
            counts[place] = 0
            number += 1
        ends[side] = number
    return number
