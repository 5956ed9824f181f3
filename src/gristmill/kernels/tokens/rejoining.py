"""The second pass of tokenisation: exceptions that the first pass cut are put together again.

Longest first, then leftmost, none over another; one that would span a blank is none, but keeps its place from others.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.affixes import Bytes, Keys, find_key
from gristmill.kernels.tokens.cutting import BLANK, Spans, exception_at, put_parts, put_token, token_end, token_start
from gristmill.kernels.tokens.english_tables import IS_START, IS_WHOLE, EnglishTables
from gristmill.kernels.tokens.jit import as_int, jit

_LONGEST_PATTERN = 11  # tokens
_MIX = np.uint64(0xFF51AFD7ED558CCD)


@jit
def rejoin(data: Bytes, spans: Spans, keys: Keys, count: int, tables: EnglishTables) -> tuple[Spans, Keys, int]:
    """Return spans, hashes and number of the tokens, in arrays of their own if anything changed."""
    found = _candidates(keys, count, tables)
    if len(found) == 0:
        return spans, keys, count
    ends = _choose(found, count)
    size = count + 2 * len(found)
    joined, joined_keys = np.empty((size, 3), np.int32), np.empty(size, np.uint64)
    total = 0
    first = 0
    while first < count:
        end = max(as_int(ends[first]), first + 1)
        part = -1
        if ends[first] and not _has_blank(spans, first, end - 1):
            part = exception_at(data, token_start(spans, first), token_end(spans, end - 1), tables)
        if part >= 0:
            total = put_parts(data, joined, joined_keys, total, token_start(spans, first), part, tables)
            joined[total - 1, 2] = spans[end - 1, 2] & BLANK
        else:
            for token in range(first, end):
                start = token_start(spans, token)
                total = put_token(joined, joined_keys, total, start, token_end(spans, token), keys[token])
                joined[total - 1, 2] = spans[token, 2]
        first = end
    return joined, joined_keys, total


@jit
def _candidates(keys: Keys, count: int, tables: EnglishTables) -> Spans:
    """(first token, end) of every cut-up exception, by where it starts."""
    found = np.empty((16, 2), np.int32)
    total = 0
    for first in range(count):
        key = np.uint64(0)
        for token in range(first, min(count, first + _LONGEST_PATTERN)):
            key = (key ^ keys[token]) * _MIX
            key = key ^ (key >> np.uint64(33))
            slot = find_key(tables.pattern_keys, key if key else np.uint64(1))
            if slot < 0:
                break
            if tables.pattern_kinds[slot] & IS_WHOLE:
                if total == len(found):
                    found = _longer(found)
                found[total, 0], found[total, 1] = first, token + 1
                total += 1
            if not tables.pattern_kinds[slot] & IS_START:
                break
    return found[:total]


@jit
def _longer(rows: Spans) -> Spans:
    larger = np.empty((2 * len(rows), 2), np.int32)
    for row in range(len(rows)):
        larger[row, 0], larger[row, 1] = rows[row, 0], rows[row, 1]
    return larger


@jit
def _choose(found: Spans, count: int) -> NDArray[np.int32]:
    """By first token: where the exception chosen there ends, or 0."""
    covered = np.zeros(count, np.bool_)
    ends = np.zeros(count, np.int32)
    for size in range(_LONGEST_PATTERN, 0, -1):
        for row in range(len(found)):
            first, end = token_start(found, row), token_end(found, row)
            if end - first != size:
                continue
            if not covered[first] and not covered[end - 1]:
                ends[first] = end
            for token in range(first, end):
                covered[token] = True
    return ends


@jit
def _has_blank(spans: Spans, first: int, end: int) -> bool:
    for token in range(first, end):
        if spans[token, 2] & BLANK:
            return True
    return False
