"""Writing down which documents `tally.py` has chosen as examples, and how their texts begin.

Arrays, beside those of `tally.py`; E and S are as many as windows and samples have places:

    marks          [D]  zeros, before and afterwards
    owners     [E + S]  which window, four of each rule; from E on which reason. `examples` which of the chosen
    near_values    [E]  what was measured; `sample_at` [S] which of `gone_rows`
    chosen         [C]  documents, in order, each once: at most D, and at most E + S
    beginnings     [..] how their texts begin, end to end; `beginning_ends` [C]
    made           [3]  how many there are: near, sampled, chosen
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tally_layout import BEGINNING, ELSEWHERE, LONGEST_CHARACTER, NEAREST, WINDOWS
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes, copy_bytes, count_characters_in, prefetch

_AHEAD = 8  # beginnings, each of which is several lines of the cache

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]
Numbers = NDArray[np.uint32]


@inline
def _owner(firsts: Longs, count: int, place: int) -> int:
    """Which of `count` ranges a place is in, where each begins at its `firsts`; of empty ones, none."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@inline
def _end_of_beginning(data: Bytes, start: int, stop: int) -> int:
    """Where the first BEGINNING characters of a text end: a byte 10xxxxxx continues one."""
    end = start + BEGINNING
    if end >= stop:
        return stop
    seen, most = count_characters_in(data, start, end), min(stop, start + LONGEST_CHARACTER * BEGINNING)
    while end < most:
        if data[end] & 0xC0 != 0x80:
            if seen == BEGINNING:
                break
            seen += 1
        end += 1
    return end


@inline
def _mark(
    places: tuple[int, int],
    nearest: Longs,
    near_rows: Longs,
    sampled: Longs,
    gone_rows: Longs,
    documents: int,
    marks: NDArray[np.int32],
    chosen: Longs,
) -> int:
    """Number the documents that are examples, from one; return how many there are."""
    for place in range(places[0]):
        if nearest[place] >= 0:
            marks[near_rows[place]] = 1
    for place in range(places[1]):
        if sampled[place] >= 0:
            marks[gone_rows[sampled[place]]] = 1
    number = 0
    for d in range(documents):
        if marks[d] != 0:
            chosen[number] = d
            number += 1
            marks[d] = number
    return number


@part
def write_examples(
    of_windows: tuple[int, Longs, Doubles, int, Longs, Longs, Doubles],
    of_samples: tuple[int, Longs, Longs, int, Longs, Longs],
    documents: int,
    marks: NDArray[np.int32],
    owners: NDArray[np.uint16],
    examples: Numbers,
    chosen: Longs,
    made: Longs,
) -> None:
    """Write down the examples of windows and samples, which are then ELSEWHERE."""
    rules, firsts, values, near_places, nearest, near_rows, near_values = of_windows
    reasons, gone_firsts, gone_rows, sample_places, sampled, sample_at = of_samples
    made[2] = _mark((near_places, sample_places), nearest, near_rows, sampled, gone_rows, documents, marks, chosen)
    number = 0
    for place in range(near_places):
        at = nearest[place]
        if at >= 0:
            owners[number] = WINDOWS * _owner(firsts, rules, at) + place // NEAREST % WINDOWS
            examples[number] = marks[near_rows[place]] - 1
            near_values[number] = values[at] + 0.0  # -0.0 becomes 0.0
            nearest[place] = ELSEWHERE
            number += 1
    made[0], number = number, 0
    for place in range(sample_places):
        at = sampled[place]
        if at >= 0:
            owners[near_places + number] = _owner(gone_firsts, reasons, at)
            examples[near_places + number] = marks[gone_rows[at]] - 1
            sample_at[number] = at
            sampled[place] = ELSEWHERE
            number += 1
    made[1] = number
    for place in range(made[2]):
        marks[chosen[place]] = 0


@part
def write_beginnings(
    data: Bytes, starts: Longs, stops: Longs, count: int, chosen: Longs, beginnings: Bytes, ends: Numbers
) -> None:
    """Copy how the texts of the chosen documents begin."""
    at = 0
    for place in range(count):
        if place + _AHEAD < count:
            prefetch(data, starts[chosen[place + _AHEAD]])
        start, stop = starts[chosen[place]], stops[chosen[place]]
        at = copy_bytes(data, start, _end_of_beginning(data, start, stop), beginnings, at)
        ends[place] = at


@inline
def most_chosen(near_places: int, sample_places: int, documents: int) -> int:
    """How many documents may be examples."""
    return min(documents, near_places + sample_places)
