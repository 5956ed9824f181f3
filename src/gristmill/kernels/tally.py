"""Counting measures into the slots of `metrics/tally.py`, those of all rules in one call, and choosing examples.

A value's slot is read off its bits: eleven of the exponent and the first five of the fraction, which is 32 to an
octave. The same pass finds the least and the greatest value, the sum in fixed point, which documents are nearest to a
bound, and which are the sample of a reason.

What takes time here is memory that is not in the cache, so little is touched: counts are of one rule at a time,
rows of documents are not passed in where they follow from what the previous rule kept, and the beginnings and ends
of texts are prefetched. How one rule is counted is in `tally_counting.py`.

Letters: R rules, V values of all rules, D documents, G reasons documents were dropped for, S slots. Rules and reasons
have a place of their own among windows and samples, the same in every call. Arrays of `count_measures`:

    data         [...]       text d is data[starts[d]:stops[d]]; `keys` [D] are made of them, or given if `texts` is 0
    firsts       [R + 1]     where the values of a rule begin
    values       [V]         `kept` 0 or 1
    sources      [R]         where the rows of a rule's documents begin in `rows`; or ALL, which are in order; or KEPT,
                             those that the previous rule kept. `offsets` [R] are added to them
    current      [..]        room for the rows of any one rule
    bounds       [R, 2]      low, high: not a number where there is none
    places       [R]         which four windows are those of a rule
    gone_firsts  [G + 1]     where the documents of a reason begin in `gone_rows`; `gone_places` which sample is its
    counts       [2, S]      zeros, before and afterwards: of all values, then of refused ones
    sums         [R, 2, 2]   refused, kept: of whole numbers, and of fractions in 2 to the power of -32
    extremes     [R, 2, 2]   least, greatest: infinite and minus infinite of a rule without values
    ends         [R, 2]      where what was counted of a side ends in `slots` and `taken`, which have `room`
    distances    [.., 4, 8]  of the nearest, in order; `found` their keys, `nearest` which values, or NOBODY, or
                             ELSEWHERE: documents further away than those are left out. `near_rows` which documents
    least        [.., 16]    keys of samples, in order; `sampled` which of `gone_rows`, or NOBODY, or ELSEWHERE

The arrays after these are in `tally_examples.py`.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_counting import Taking, Totals, count_rule
from gristmill.kernels.tally_examples import most_chosen, write_beginnings, write_examples
from gristmill.kernels.tally_layout import (
    ALL,
    BEGINNING,
    KEPT,
    LONGEST_CHARACTER,
    NEAREST,
    SAMPLED,
    SLOTS,
    WINDOWS,
)
from gristmill.kernels.tally_windows import Doubles, Given, Keys, Longs, Windows, take_samples
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import end_of_texts, greatest, sized
from gristmill.kernels.text.words_of_bytes import Bytes, load8, prefetch

_AHEAD = 24  # texts, which is how many a core fetches at a time
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15))
_30, _27, _31, _8 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(8)


@inline
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _30)) * _FACTORS[0]
    value = (value ^ (value >> _27)) * _FACTORS[1]
    return value ^ (value >> _31)


@inline
def _text_key(data: Bytes, start: int, stop: int) -> np.uint64:
    """A number that is the same wherever a text is: of its first and last bytes and its length.

    Hashing the whole text would read it from memory again. Two that agree in all this and differ in between count as
    one example, which does no harm.
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
    """One more than the greatest document number. Rows that the previous rule kept are among that rule's own."""
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
            prefetch(data, stops[d + _AHEAD] - 8)
        keys[d] = _text_key(data, starts[d], stops[d])


@inline
def _find_rows(rule: int, size: int, sources: Longs, rows: Longs, current: Longs) -> None:
    """Write down the row of each value of a rule, unless the rows the previous rule kept are there already."""
    if sources[rule] == ALL or (rule == 0 and sources[rule] == KEPT):
        for place in range(size):
            current[place] = place
    elif sources[rule] >= 0:
        for place in range(size):
            current[place] = rows[sources[rule] + place]


@inline
def _keep_rows(kept: Bytes, begin: int, size: int, current: Longs) -> None:
    """Leave only the rows that a rule has kept."""
    left = 0
    for place in range(size):
        current[left] = current[place]
        left += kept[begin + place]


@inline
def _next_rule(
    rule: int,
    rules: int,
    number: int,
    of_rules: tuple[Longs, Longs, Longs, Longs, Doubles, Longs],
    given: Given,
    counts: NDArray[np.int32],
    totals: Totals,
    taking: Taking,
    windows: Windows,
) -> int:
    """Count the values of a rule, and leave the rows that it has kept if the next one judges those."""
    firsts, sources, offsets, rows, bounds, places = of_rules
    _, kept, current, _ = given
    begin, end = firsts[rule], firsts[rule + 1]
    _find_rows(rule, end - begin, sources, rows, current)
    low, high = bounds[2 * rule], bounds[2 * rule + 1]
    low, high = np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high
    at_low = WINDOWS * NEAREST * places[rule] + NEAREST - 1
    number = count_rule(
        rule, number, at_low, (begin, end, low, high, offsets[rule]), given, counts, totals, taking, windows
    )
    if rule + 1 < rules and sources[rule + 1] == KEPT:
        _keep_rows(kept, begin, end - begin, current)
    return number


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
    counts=lambda: 2 * SLOTS,
    sums=lambda rules: 4 * rules,
    extremes=lambda rules: 4 * rules,
    ends=lambda rules: 2 * rules,
    slots=lambda room: room,
    taken=lambda room: room,
    distances=lambda near_places, places, rules: max(near_places, (greatest(places, rules) + 1) * WINDOWS * NEAREST),
    found=lambda near_places, places, rules: max(near_places, (greatest(places, rules) + 1) * WINDOWS * NEAREST),
    nearest=lambda near_places, places, rules: max(near_places, (greatest(places, rules) + 1) * WINDOWS * NEAREST),
    near_rows=lambda near_places, places, rules: max(near_places, (greatest(places, rules) + 1) * WINDOWS * NEAREST),
    least=lambda sample_places, gone_places, reasons: max(
        sample_places, (greatest(gone_places, reasons) + 1) * SAMPLED
    ),
    sampled=lambda sample_places, gone_places, reasons: max(
        sample_places, (greatest(gone_places, reasons) + 1) * SAMPLED
    ),
    marks=lambda documents, rows, firsts, sources, offsets, rules, gone_rows, gone_firsts, reasons: max(
        documents,
        _end_of_documents(rows, firsts, sources, offsets, rules),
        greatest(gone_rows, gone_firsts[reasons]) + 1,
    ),
    owners=lambda near_places, sample_places: near_places + sample_places,
    examples=lambda near_places, sample_places: near_places + sample_places,
    near_values=lambda near_places: near_places,
    sample_at=lambda sample_places: sample_places,
    chosen=most_chosen,
    beginnings=lambda near_places, sample_places, documents, texts: (
        most_chosen(near_places, sample_places, documents) * BEGINNING * LONGEST_CHARACTER + 8 if texts else 0
    ),
    beginning_ends=most_chosen,
    made=lambda: 3,
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
    ends: NDArray[np.uint32],
    room: int,
    slots: NDArray[np.int16],
    taken: NDArray[np.int32],
    distances: Doubles,
    found: Keys,
    nearest: Longs,
    near_rows: Longs,
    least: Keys,
    sampled: Longs,
    near_places: int,
    sample_places: int,
    documents: int,
    marks: NDArray[np.int32],
    owners: NDArray[np.uint16],
    examples: NDArray[np.uint32],
    near_values: Doubles,
    sample_at: Longs,
    chosen: Longs,
    beginnings: Bytes,
    beginning_ends: NDArray[np.uint32],
    made: Longs,
) -> int:
    """Count the values of all rules and choose examples; return how many slots were not empty. Arrays: see above."""
    _make_keys(data, starts, stops, texts, keys)
    totals, taking, windows = (sums, extremes, ends), (room, slots, taken), (distances, found, nearest, near_rows)
    number = 0
    of_rules, given = (firsts, sources, offsets, rows, bounds, places), (values, kept, current, keys)
    for rule in range(rules):
        number = _next_rule(rule, rules, number, of_rules, given, counts, totals, taking, windows)
    take_samples(reasons, gone_firsts, gone_rows, gone_places, keys, least, sampled)
    of_windows = (rules, firsts, values, near_places, nearest, near_rows, near_values)
    of_samples = (reasons, gone_firsts, gone_rows, sample_places, sampled, sample_at)
    write_examples(of_windows, of_samples, documents, marks, owners, examples, chosen, made)
    if texts > 0:
        write_beginnings(data, starts, stops, made[2], chosen, beginnings, beginning_ends)
    return number
