"""Paragraphs that contain given phrases, found by skipping most of the text (Wu and Manber, 1994).

The last two bytes of a window as long as the shortest phrase say how far it can move without missing one. A phrase is
compared byte by byte where the window stops, ASCII capitals as small letters.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import PAIR_BITS, SHIFTS
from gristmill.kernels.text.layout import PHRASE_COLUMNS as COLUMNS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import Bytes

_PAIR_MASK = (1 << PAIR_BITS) - 1


@inline
def _matches(data: Bytes, start: int, stop: int, table: Bytes, phrase: int, length: int) -> bool:
    if start + length > stop:
        return False
    for k in range(length):
        byte = data[start + k]
        if (byte | 0x20 if 0x41 <= byte <= 0x5A else byte) != table[phrase + k]:
            return False
    return True


@inline
def _kind_of_match(data: Bytes, start: int, stop: int, table: Bytes) -> int:
    """Return the greatest kind among the phrases that begin here, -1 if none does."""
    kind = -1
    entry = SHIFTS + 2
    for _ in range(table[SHIFTS + 1]):
        length = np.int64(table[entry + 1])
        if table[entry] > kind and _matches(data, start, stop, table, entry + 2, length):
            kind = np.int64(table[entry])
        entry += 2 + length
    return kind


@inline
def kinds_in(data: Bytes, start: int, stop: int, table: Bytes) -> int:
    """Return one bit for each kind of phrase that occurs; where two begin at one place, for the greater kind."""
    kinds = 0
    last = start + np.int64(table[SHIFTS]) - 1
    while last < stop:
        shift = table[(np.int64(data[last - 1]) & _PAIR_MASK) << PAIR_BITS | np.int64(data[last]) & _PAIR_MASK]
        if shift:
            last += shift
            continue
        kind = _kind_of_match(data, last + 1 - np.int64(table[SHIFTS]), stop, table)
        if kind >= 0:
            kinds |= 1 << kind
        last += 1
    return kinds


@sized(
    **TEXTS,
    table=lambda: SHIFTS + 2,
    counts=lambda documents: documents * COLUMNS,
)
def count_paragraphs_with_phrases(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    table: Bytes,
    counts: NDArray[np.int64],
) -> None:
    """Count, in each document, matches of phrases of kind 1 and paragraphs with a phrase of kind 0.

    table   [...]    shifts, length of the shortest phrase, number of phrases, then kind, length and bytes of each
    counts  [D, 2]   one row per document
    """
    window = np.int64(table[SHIFTS])
    for d in range(documents):
        stop = stops[d]
        matches = paragraphs = 0
        known = starts[d]  # no paragraph ends between here and the next place that is looked at
        is_counted = False
        last = known + window - 1
        while last < stop:
            shift = table[(np.int64(data[last - 1]) & _PAIR_MASK) << PAIR_BITS | np.int64(data[last]) & _PAIR_MASK]
            if shift:
                last += shift
                continue
            start = last - window + 1
            kind = _kind_of_match(data, start, stop, table)
            if kind == 1:
                matches += 1
            elif kind == 0:
                while known + 1 < start:
                    is_end = data[known] == 0x0A and data[known + 1] == 0x0A
                    is_counted = is_counted and not is_end
                    known += 2 if is_end else 1
                paragraphs += not is_counted
                is_counted = True
            last += 1
        counts[d * COLUMNS], counts[d * COLUMNS + 1] = matches, paragraphs
