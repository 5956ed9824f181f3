"""The first pass of tokenisation, for one piece between white space: affixes are taken off, the rest is cut at infixes.

Tokens are written as two numbers each, where they start and where they end, in bytes from the start of the piece.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens.affixes import find_value, hash_span, infix_length, is_url, prefix_length, suffix_length
from gristmill.kernels.tokens.characters import Classes, class_at, start_before, width_at
from gristmill.kernels.tokens.code_points import INNER
from gristmill.kernels.tokens.english_tables import EXCEPTIONS_TABLE, PARTS, EnglishTables

Spans = NDArray[np.int32]  # [2 * tokens]

_LONGEST_EXCEPTION = 29  # bytes
_FULL_STOP = 46


@inline
def put_span(spans: Spans, count: int, start: int, end: int) -> int:
    """Write one token; return how many there are."""
    spans[2 * count], spans[2 * count + 1] = start, end
    return count + 1


@inline
def put_parts(spans: Spans, count: int, start: int, first: int, tables: EnglishTables) -> int:
    """Write the tokens of an exception that begins at `start`."""
    place = np.int64(tables.words[PARTS]) + first
    while tables.words[place]:
        end = start + np.int64(tables.words[place])
        count = put_span(spans, count, start, end)
        start = end
        place += 1
    return count


@part
def exception_at(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """The first part of the exception that bytes [low, high) are, or -1."""
    if high - low > _LONGEST_EXCEPTION or low >= high:
        return -1
    return find_value(tables.words, EXCEPTIONS_TABLE, hash_span(data, low, high))


@part
def cut_piece(data: Bytes, origin: int, end: int, spans: Spans, tables: EnglishTables) -> int:
    """Cut bytes [origin, end); return how many tokens there are. `spans` has room for one per byte.

    Affixes are taken off until an exception is left or nothing more can be taken; what is left is cut.
    """
    low, high = origin, end
    count = 0
    top = high - low  # suffixes wait at the end of the room, the outermost last
    first_suffix = top
    exception = exception_at(data, low, high, tables)
    changed = True
    while exception < 0 and low < high and changed:
        prefix = prefix_length(data, low, high, tables.classes)
        exception = exception_at(data, low + prefix, high, tables) if prefix else -1
        suffix = 0 if exception >= 0 else suffix_length(data, low + prefix, high, tables)
        if suffix:
            exception = exception_at(data, low, high - suffix, tables)
            prefix = 0 if exception >= 0 else prefix
            first_suffix -= 1
            put_span(spans, first_suffix, high - suffix - origin, high - origin)
        if prefix:
            count = put_span(spans, count, low - origin, low + prefix - origin)
        low += prefix
        high -= suffix
        changed = prefix + suffix > 0
        if exception < 0 and changed:
            exception = exception_at(data, low, high, tables)
    if exception >= 0:
        count = put_parts(spans, count, low - origin, exception, tables)
    elif low < high:
        count = _cut_middle(data, origin, low, high, spans, count, tables)
    for suffix in range(first_suffix, top):
        count = put_span(spans, count, np.int64(spans[2 * suffix]), np.int64(spans[2 * suffix + 1]))
    return count


@part
def _cut_middle(data: Bytes, origin: int, low: int, high: int, spans: Spans, count: int, tables: EnglishTables) -> int:
    """Cut at infixes, unless it is a URL."""
    inner, dotted = _survey(data, low, high, tables.classes)
    if not inner or (dotted and is_url(data, low, high, tables.classes)):
        return put_span(spans, count, low - origin, high - origin)
    start = at = low
    before = 0
    while at < high:
        infix = infix_length(data, low, at, high, before, tables.classes)
        if infix and at > low:
            if start < at:
                count = put_span(spans, count, start - origin, at - origin)
            count = put_span(spans, count, at - origin, at + infix - origin)
            start = at + infix
        at += infix if infix else width_at(data, at)
        before = class_at(data, start_before(data, at), tables.classes)
    if start < high:
        count = put_span(spans, count, start - origin, high - origin)
    return count


@part
def _survey(data: Bytes, low: int, high: int, classes: Classes) -> tuple[bool, bool]:
    """Whether some character may be an infix, and whether there is a full stop, without which there is no URL."""
    inner = 0
    dotted = False
    at = low
    while at < high:
        inner |= class_at(data, at, classes) & INNER
        dotted |= data[at] == _FULL_STOP
        at += width_at(data, at)
    return inner != 0, dotted
