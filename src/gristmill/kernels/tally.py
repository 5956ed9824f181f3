"""Counting measures into the slots of `metrics/tally.py`, those of all rules in one call, and choosing examples.

A value's slot is read off its bits: eleven of the exponent and the first five of the fraction, which is 32 to an
octave. On the way go the least and the greatest value, the sum in fixed point, which documents are nearest to a bound,
and which are the sample of a reason.

What takes time here is memory that is not in the cache, so little is touched: counts are those of one side at a time,
rows of documents are not handed over where they follow from what the rule before has kept, and the beginnings and ends
of texts are asked for before they are needed.

Letters: R rules, V values of all rules, D documents, G reasons documents were dropped for, S slots. Rules and reasons
have a place of their own among windows and samples, the same in every call. Arrays of `count_measures`:

    data         [...]       text d is data[starts[d]:stops[d]]; `keys` [D] are made of them, or given if `texts` is 0
    firsts       [R + 1]     where the values of a rule begin
    values       [V]         `kept` 0 or 1
    sources      [R]         where the rows of a rule's documents begin in `rows`; or ALL, which are in order; or KEPT,
                             those that the rule before has kept. `offsets` [R] are added to them
    current      [..]        room for the rows of any one rule
    bounds       [R, 2]      low, high: not a number where there is none
    places       [R]         which four windows are those of a rule
    gone_firsts  [G + 1]     where the documents of a reason begin in `gone_rows`; `gone_places` which sample is its
    counts       [S]         zeros, before and afterwards
    sums         [R, 2, 2]   refused, kept: of whole numbers, and of fractions in 2 to the power of -32
    extremes     [R, 2, 2]   least, greatest: infinite and minus infinite of a rule without values
    ends         [R, 2]      where what was counted of a side ends in `slots` and `taken`, which have `room`
    distances    [.., 4, 8]  of the nearest, in order; `found` their keys, `nearest` which values, or NOBODY, or
                             ELSEWHERE: what is further away than those is left out. `near_rows` which documents
    least        [.., 16]    keys of samples, in order; `sampled` which of `gone_rows`, or NOBODY, or ELSEWHERE
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import (
    ALL,
    ELSEWHERE,
    KEPT,
    LAST,
    NEAREST,
    NOBODY,
    NOT_A_NUMBER,
    PER_OCTAVE,
    SAMPLED,
    SLOTS,
    WINDOWS,
)
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.sizes import end_of_texts, greatest, sized
from gristmill.kernels.text.words_of_bytes import Bytes, bits_of, load8, prefetch

_FIRST = 982 * PER_OCTAVE - 1  # what lies below slot 0 in the bits: exponents under 2 to the power of -41
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
_INFINITE = np.int64(0x7FF0000000000000)
_UNIT = 4294967296.0  # fractions are counted in 2 to the power of -32
_AHEAD = 24  # texts, which is how many a core fetches at a time
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


@inline
def _text_key(data: Bytes, start: int, stop: int) -> np.uint64:
    """A number that is the same wherever a text is: of its first and last bytes and its length.

    All of a text would be read from memory once more for it. Two that agree in all this and differ in between count as
    one example, which costs nobody anything.
    """
    length = stop - start
    first = last = np.uint64(0)
    if length >= 8:
        first, last = load8(data, start), load8(data, stop - 8)
    else:
        for place in range(length):
            first = (first << _8) | np.uint64(data[start + place])
    return _mixed(_mixed(first + np.uint64(length) * _FACTORS[2]) + last)


@inline
def _slot(value: float, magnitude: int) -> int:
    """The slot of a value, whose bits without the sign are `magnitude`; no branch for zeros, which come by chance."""
    slot = min(max((magnitude >> 47) - _FIRST, 1 if magnitude != 0 else 0), LAST)
    return slot if value > 0 else -slot


@part
def _enter(
    base: int,
    distance: float,
    key: np.uint64,
    value_at: int,
    row: int,
    distances: Doubles,
    found: Keys,
    nearest: Longs,
    near_rows: Longs,
) -> None:
    """Put a document into a window, which is in order of distance and key and has each key once."""
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
                nearest[base + other], near_rows[base + other] = value_at, row
            return
    end = NEAREST - 1
    for other in range(place, NEAREST):
        if found[base + other] == key and nearest[base + other] != NOBODY:
            end = other  # the same text, and not as near
            break
    for other in range(end, place, -1):
        distances[base + other], found[base + other] = distances[base + other - 1], found[base + other - 1]
        nearest[base + other], near_rows[base + other] = nearest[base + other - 1], near_rows[base + other - 1]
    if place < NEAREST:
        distances[base + place], found[base + place] = distance, key
        nearest[base + place], near_rows[base + place] = value_at, row


@part
def _sample(base: int, key: np.uint64, row_at: int, least: Keys, sampled: Longs) -> None:
    """Put a document into a sample, which is in order of keys and has each once."""
    place = SAMPLED
    while place > 0 and (sampled[base + place - 1] == NOBODY or key < least[base + place - 1]):
        place -= 1
    if place > 0 and least[base + place - 1] == key:
        if sampled[base + place - 1] == ELSEWHERE:
            sampled[base + place - 1] = row_at
        return
    for other in range(SAMPLED - 1, place, -1):
        least[base + other], sampled[base + other] = least[base + other - 1], sampled[base + other - 1]
    if place < SAMPLED:
        least[base + place], sampled[base + place] = key, row_at


@inline
def _put(number: int, room: int, slot: int, count: int, slots: NDArray[np.int16], taken: NDArray[np.int32]) -> int:
    """Note how many values a slot has, if it has any."""
    if count != 0 and number < room:
        slots[number], taken[number] = slot, count
        number += 1
    return number


@inline
def _most_of_any(firsts: Longs, rules: int) -> int:
    most = 0
    for rule in range(rules):
        most = max(most, firsts[rule + 1] - firsts[rule])
    return most


@inline
def _end_of_rows(firsts: Longs, sources: Longs, rules: int) -> int:
    """Where the last of the rows that are given ends."""
    end = 0
    for rule in range(rules):
        if sources[rule] >= 0:
            end = max(end, sources[rule] + firsts[rule + 1] - firsts[rule])
    return end


@inline
def _end_of_documents(rows: Longs, firsts: Longs, sources: Longs, offsets: Longs, rules: int) -> int:
    """One more than the greatest number of any document. What the rule before has kept is among its own."""
    end, greatest_row = 0, -1
    for rule in range(rules):
        size = firsts[rule + 1] - firsts[rule]
        if sources[rule] == ALL or (rule == 0 and sources[rule] == KEPT):
            greatest_row = size - 1
        elif sources[rule] >= 0:
            greatest_row = -1
            for place in range(size):
                greatest_row = max(greatest_row, rows[sources[rule] + place])
        if size > 0:
            end = max(end, greatest_row + offsets[rule] + 1)
    return end


@inline
def _make_keys(data: Bytes, starts: Longs, stops: Longs, texts: int, keys: Keys) -> None:
    for d in range(texts):
        if d + _AHEAD < texts:
            prefetch(data, starts[d + _AHEAD])
        keys[d] = _text_key(data, starts[d], stops[d])


@inline
def _find_rows(rule: int, size: int, sources: Longs, rows: Longs, current: Longs) -> None:
    """Write down which rows the values of a rule are of, unless what the rule before has kept is there already."""
    if sources[rule] == ALL or (rule == 0 and sources[rule] == KEPT):
        for place in range(size):
            current[place] = place
    elif sources[rule] >= 0:
        for place in range(size):
            current[place] = rows[sources[rule] + place]


@inline
def _take_counts(
    first: float,
    last: float,
    counts: NDArray[np.int32],
    number: int,
    room: int,
    slots: NDArray[np.int16],
    taken: NDArray[np.int32],
) -> int:
    """Take out what was counted, leaving zeros: zeros, and what lies between the least and the greatest value."""
    number = _put(number, room, 0, counts[LAST], slots, taken)
    counts[LAST] = 0
    if first <= last:
        begin, end = _slot(first, bits_of(first) & _MAGNITUDE), _slot(last, bits_of(last) & _MAGNITUDE)
        for slot in range(begin, end + 1):
            number = _put(number, room, slot, counts[LAST + slot], slots, taken)
            counts[LAST + slot] = 0
    return number


@part
def _count_side(
    side: int,
    number: int,
    at_low: int,
    of_rule: tuple[int, int, float, float, int],
    given: tuple[Doubles, Bytes, Longs, Keys],
    counts: NDArray[np.int32],
    totals: tuple[Longs, Doubles],
    taking: tuple[int, NDArray[np.int16], NDArray[np.int32]],
    windows: tuple[Doubles, Keys, Longs, Longs],
) -> int:
    """Count the values of one side of a rule; `at_low` is the last place of its window at the lower bound."""
    begin, end, low, high, offset = of_rule
    values, kept, current, keys = given
    distances, found, nearest, near_rows = windows
    wanted, at_high = side & 1, at_low + 2 * NEAREST
    # How far away the last in each of the two windows is: nearly all documents are further, and out by this.
    last_low = distances[at_low] if not np.isinf(low) else -1.0
    last_high = distances[at_high] if not np.isinf(high) else -1.0
    first, last = np.inf, -np.inf  # but zero
    strange = 0
    wholes = fractions = np.int64(0)
    for place in range(begin, end):
        if kept[place] != wanted:
            continue
        value = values[place]
        magnitude = bits_of(value) & _MAGNITUDE
        if magnitude > _INFINITE:
            strange += 1
            continue
        slot = _slot(value, magnitude)
        counts[LAST + slot] += 1
        first = min(first, value if magnitude != 0 else np.inf)
        last = max(last, value if magnitude != 0 else -np.inf)
        if slot != LAST and slot != -LAST:
            whole = np.floor(value)
            wholes += np.int64(whole)
            fractions += np.int64(np.rint((value - whole) * _UNIT))
        to_low, to_high = abs(value - low), abs(value - high)
        if (to_low > last_low and to_high > last_high) or magnitude == _INFINITE:
            continue
        at = at_high if to_high < to_low else at_low
        distance, row = min(to_low, to_high), current[place - begin] + offset
        # Measures that are whole numbers tie by the thousand at a threshold: most are out by their keys.
        if distance < distances[at] or (distance == distances[at] and keys[row] <= found[at]):
            _enter(at + 1 - NEAREST, distance, keys[row], place, row, distances, found, nearest, near_rows)
            last_low = distances[at_low] if not np.isinf(low) else -1.0
            last_high = distances[at_high] if not np.isinf(high) else -1.0
    sums, extremes = totals
    sums[2 * side], sums[2 * side + 1] = wholes, fractions
    extremes[2 * side] = min(first, 0.0) if counts[LAST] else first
    extremes[2 * side + 1] = max(last, 0.0) if counts[LAST] else last
    room, slots, taken = taking
    number = _put(number, room, NOT_A_NUMBER, strange, slots, taken)
    return _take_counts(first, last, counts, number, room, slots, taken)


@inline
def _keep_rows(kept: Bytes, begin: int, size: int, current: Longs) -> None:
    """Leave only the rows that a rule has kept."""
    left = 0
    for place in range(size):
        current[left] = current[place]
        left += kept[begin + place]


@inline
def _take_samples(
    reasons: int,
    gone_firsts: Longs,
    gone_rows: Longs,
    gone_places: Longs,
    keys: Keys,
    least: Keys,
    sampled: Longs,
) -> None:
    for reason in range(reasons):
        base = gone_places[reason] * SAMPLED
        for place in range(gone_firsts[reason], gone_firsts[reason + 1]):
            key = keys[gone_rows[place]]
            if sampled[base + SAMPLED - 1] == NOBODY or key <= least[base + SAMPLED - 1]:
                _sample(base, key, place, least, sampled)


@sized(
    starts=lambda texts: texts,
    stops=lambda texts: texts,
    data=lambda starts, stops, texts: max(0, end_of_texts(starts, stops, texts)),
    firsts=lambda rules: rules + 1,
    values=lambda firsts, rules: firsts[rules],
    kept=lambda firsts, rules: firsts[rules],
    sources=lambda rules: rules,
    offsets=lambda rules: rules,
    current=_most_of_any,
    rows=_end_of_rows,
    gone_firsts=lambda reasons: reasons + 1,
    gone_rows=lambda gone_firsts, reasons: gone_firsts[reasons],
    keys=lambda texts, rows, firsts, sources, offsets, rules, gone_rows, gone_firsts, reasons: max(
        texts, _end_of_documents(rows, firsts, sources, offsets, rules), greatest(gone_rows, gone_firsts[reasons]) + 1
    ),
    bounds=lambda rules: 2 * rules,
    places=lambda rules: rules,
    gone_places=lambda reasons: reasons,
    counts=lambda: SLOTS,
    sums=lambda rules: 4 * rules,
    extremes=lambda rules: 4 * rules,
    ends=lambda rules: 2 * rules,
    slots=lambda room: room,
    taken=lambda room: room,
    distances=lambda places, rules: (greatest(places, rules) + 1) * WINDOWS * NEAREST,
    found=lambda places, rules: (greatest(places, rules) + 1) * WINDOWS * NEAREST,
    nearest=lambda places, rules: (greatest(places, rules) + 1) * WINDOWS * NEAREST,
    near_rows=lambda places, rules: (greatest(places, rules) + 1) * WINDOWS * NEAREST,
    least=lambda gone_places, reasons: (greatest(gone_places, reasons) + 1) * SAMPLED,
    sampled=lambda gone_places, reasons: (greatest(gone_places, reasons) + 1) * SAMPLED,
)
def count_measures(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    texts: int,
    keys: Keys,
    rules: int,
    firsts: Longs,
    values: Doubles,
    kept: Bytes,
    sources: Longs,
    offsets: Longs,
    rows: Longs,
    current: Longs,
    bounds: Doubles,
    places: Longs,
    reasons: int,
    gone_firsts: Longs,
    gone_rows: Longs,
    gone_places: Longs,
    counts: NDArray[np.int32],
    sums: Longs,
    extremes: Doubles,
    ends: Longs,
    room: int,
    slots: NDArray[np.int16],
    taken: NDArray[np.int32],
    distances: Doubles,
    found: Keys,
    nearest: Longs,
    near_rows: Longs,
    least: Keys,
    sampled: Longs,
) -> int:
    """Count the values of all rules and choose examples; return how many slots were not empty. Arrays: see above."""
    _make_keys(data, starts, stops, texts, keys)
    totals, taking, windows = (sums, extremes), (room, slots, taken), (distances, found, nearest, near_rows)
    number = 0
    for rule in range(rules):
        begin, end = firsts[rule], firsts[rule + 1]
        _find_rows(rule, end - begin, sources, rows, current)
        low, high = bounds[2 * rule], bounds[2 * rule + 1]
        low, high = np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high
        for side in range(2 * rule, 2 * rule + 2):
            # Of each side in a loop of its own: what is added to stays in registers.
            at_low = (WINDOWS * places[rule] + (side & 1)) * NEAREST + NEAREST - 1
            of_rule, given = (begin, end, low, high, offsets[rule]), (values, kept, current, keys)
            number = _count_side(side, number, at_low, of_rule, given, counts, totals, taking, windows)
            ends[side] = number
        if rule + 1 < rules and sources[rule + 1] == KEPT:
            _keep_rows(kept, begin, end - begin, current)
    _take_samples(reasons, gone_firsts, gone_rows, gone_places, keys, least, sampled)
    return number
