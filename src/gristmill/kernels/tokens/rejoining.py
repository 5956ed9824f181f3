"""The second pass of tokenisation: exceptions that the first pass cut are put together again.

Longest first, then leftmost, none over another; one that would span a blank is none, but keeps its place from others.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.affixes import find_value
from gristmill.kernels.tokens.cutting import exception_at, put_parts
from gristmill.kernels.tokens.english_tables import IS_ALONE, IS_START, IS_WHOLE, PATTERNS_TABLE, STARTS, EnglishTables
from gristmill.kernels.tokens.lexicon import FULL, Words, extend_pattern, number, number_token

Ints = NDArray[np.int32]

_LONGEST_PATTERN = 11  # tokens
_NOTHING, _BLANK, _SPACE = range(3)  # between two tokens: nothing, one blank, white space that is a token


@inline
def _record(lexicon: Words, ids: Ints, token: int) -> int:
    return number(lexicon, lay.RECORDS_AT) + lay.RECORD * np.int64(ids[token])


@inline
def _end(lexicon: Words, ids: Ints, places: Ints, token: int) -> int:
    return np.int64(places[token]) + np.int64(lexicon[_record(lexicon, ids, token) + 2])


@inline
def _gap_before(data: Bytes, text: int, lexicon: Words, ids: Ints, places: Ints, token: int) -> int:
    end = _end(lexicon, ids, places, token - 1)
    if end == places[token]:
        return _NOTHING
    return _BLANK if end + 1 == places[token] and data[text + end] == 0x20 else _SPACE


@part
def rejoin(
    data: Bytes,
    text: int,
    stop: int,
    lexicon: Words,
    tables: EnglishTables,
    scratch: Ints,
    ids: Ints,
    places: Ints,
    first: int,
    end: int,
) -> int:
    """Put tokens [first, end) of the text at [text, stop) together where they are to be; return where they end then.

    scratch  [...]  room for six numbers a byte
    Returns FULL if the lexicon is.
    """
    size = end - first
    sizes, chosen, covered, found = 0, size, 2 * size, 3 * size  # where these lie in `scratch`, one number a token
    candidates = 0
    for token in range(size):
        scratch[sizes + token] = scratch[chosen + token] = scratch[covered + token] = 0
        if lexicon[_record(lexicon, ids, first + token) + 1] & np.uint64(STARTS | IS_ALONE):
            scratch[sizes + token] = _sizes(data, text, lexicon, tables, ids, places, first + token, end)
            if scratch[sizes + token]:
                scratch[found + candidates] = token
                candidates += 1
    if candidates == 0:
        return end
    for length in range(_LONGEST_PATTERN, 0, -1):
        for candidate in range(candidates):
            token = np.int64(scratch[found + candidate])
            if scratch[sizes + token] >> length & 1:
                if not scratch[covered + token] and not scratch[covered + token + length - 1]:
                    scratch[chosen + token] = length
                for k in range(token, token + length):
                    scratch[covered + k] = 1
    return _rebuild(data, text, stop, lexicon, tables, scratch, ids, places, first, end)


@part
def _sizes(
    data: Bytes,
    text: int,
    lexicon: Words,
    tables: EnglishTables,
    ids: Ints,
    places: Ints,
    first: int,
    end: int,
) -> int:
    """One bit for each length of a cut-up exception that starts here."""
    sizes = 0
    key = np.uint64(0)
    for token in range(first, min(end, first + _LONGEST_PATTERN)):
        if token > first and _gap_before(data, text, lexicon, ids, places, token) == _SPACE:
            break
        key = extend_pattern(key, lexicon[_record(lexicon, ids, token)])
        kind = find_value(tables.words, PATTERNS_TABLE, key)
        if kind < 0:
            break
        if kind & IS_WHOLE:
            sizes |= 1 << (token + 1 - first)
        if not kind & IS_START:
            break
    return sizes


@part
def _rebuild(
    data: Bytes,
    text: int,
    stop: int,
    lexicon: Words,
    tables: EnglishTables,
    scratch: Ints,
    ids: Ints,
    places: Ints,
    first: int,
    end: int,
) -> int:
    """Write all tokens anew, those of chosen exceptions put together; return where they end."""
    size = end - first
    starts = 4 * size  # pairs of start and end, as `put_parts` writes them; before it lies what was chosen
    total = 0
    token = 0
    while token < size:
        length: int = np.int64(scratch[size + token])
        last = first + token + max(length, 1) - 1
        exception = -1
        if length and not _has_blank(data, text, lexicon, ids, places, first + token, last):
            low, high = np.int64(places[first + token]), _end(lexicon, ids, places, last)
            exception = exception_at(data, text + low, text + high, tables)
        if exception >= 0:
            total = put_parts(scratch, starts // 2 + total, np.int64(places[first + token]), exception, tables)
            total -= starts // 2
        else:
            for k in range(first + token, last + 1):
                scratch[starts + 2 * total] = places[k]
                scratch[starts + 2 * total + 1] = _end(lexicon, ids, places, k)
                total += 1
        token += max(length, 1)
    for k in range(total):
        low, high = np.int64(scratch[starts + 2 * k]), np.int64(scratch[starts + 2 * k + 1])
        known = number_token(data, text + low, text + high, stop, lexicon, tables)
        if known == FULL:
            return FULL
        ids[first + k], places[first + k] = known, low
    return first + total


@part
def _has_blank(data: Bytes, text: int, lexicon: Words, ids: Ints, places: Ints, first: int, last: int) -> bool:
    for token in range(first + 1, last + 1):
        if _gap_before(data, text, lexicon, ids, places, token) != _NOTHING:
            return True
    return False
