"""The first pass of tokenisation: pieces between white space, affixes taken off them, the rest cut at infixes.

Tokens are written as (start, end, marks) in bytes, with their hashes beside them.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.affixes import (
    Bytes,
    Classes,
    Keys,
    find_key,
    hash_span,
    infix_length,
    is_url,
    point_at,
    prefix_length,
    start_before,
    suffix_length,
    width_at,
)
from gristmill.kernels.tokens.code_points import INNER, SPACE
from gristmill.kernels.tokens.english_tables import BASE, EnglishTables
from gristmill.kernels.tokens.jit import as_int, inline, jit

Spans = NDArray[np.int32]  # [:, 3] start, end, marks

BLANK, LETTERS = 1, 2  # marks: one blank follows that is no token of its own; nothing but ASCII letters

_BASE = np.uint64(BASE)
_LONGEST_EXCEPTION = 29  # bytes
_DOLLAR, _FULL_STOP = 36, 46


@inline
def token_start(spans: Spans, token: int) -> int:
    """Where a token starts. One type of integer everywhere: each other one would compile all callees again."""
    return as_int(spans[token, 0])


@inline
def token_end(spans: Spans, token: int) -> int:
    """Where a token ends."""
    return as_int(spans[token, 1])


@inline
def put_token(spans: Spans, keys: Keys, count: int, start: int, end: int, key: np.uint64) -> int:
    """Write one token; return how many there are."""
    spans[count, 0], spans[count, 1], spans[count, 2] = start, end, 0
    keys[count] = key
    return count + 1


@jit
def put_parts(data: Bytes, spans: Spans, keys: Keys, count: int, start: int, part: int, tables: EnglishTables) -> int:
    """Write the tokens of an exception."""
    while tables.parts[part]:
        end = start + as_int(tables.parts[part])
        count = put_token(spans, keys, count, start, end, hash_span(data, start, end, tables.salt))
        start = end
        part += 1
    return count


@inline
def find_exception(key: np.uint64, length: int, tables: EnglishTables) -> int:
    """The first part of the exception of this hash and length, or -1."""
    if length > _LONGEST_EXCEPTION or length <= 0:
        return -1
    slot = find_key(tables.exception_keys, key if key else np.uint64(1))
    return as_int(tables.exception_slots[slot]) if slot >= 0 else -1


@inline
def exception_at(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """The first part of the exception that bytes [low, high) are, or -1."""
    if high - low > _LONGEST_EXCEPTION or low >= high:
        return -1
    return find_exception(hash_span(data, low, high, tables.salt), high - low, tables)


@jit
def cut_text(data: Bytes, spans: Spans, keys: Keys, tables: EnglishTables) -> int:
    """Write the tokens of a text and return how many there are; -1 if there is no room for them."""
    count = 0
    at = 0
    high = len(data)
    while at < high:
        start = at
        at = _after_space(data, at, tables.classes)
        if at > start:
            if count == len(spans):
                return -1
            count = put_token(spans, keys, count, start, at, hash_span(data, start, at, tables.salt))
            continue
        end, key, power = _letters(data, at, tables.salt)
        chunk_end = _after_chunk(data, end, tables.classes)
        if count + chunk_end - start > len(spans):
            return -1
        if end == chunk_end:
            count = _put_word(data, start, end, key, spans, keys, count, tables)
        elif start < end == chunk_end - 1:
            count = _cut_marked_word(data, start, end, key, power, spans, keys, count, tables)
        else:
            count = _cut_chunk(data, start, chunk_end, spans, keys, count, tables)
        at = chunk_end
        if at < high and data[at] == 32:
            spans[count - 1, 2] |= BLANK
            at += 1
    return count


@inline
def _after_space(data: Bytes, at: int, classes: Classes) -> int:
    while at < len(data) and classes[point_at(data, at)] & SPACE:
        at += width_at(data, at)
    return at


@inline
def _after_chunk(data: Bytes, at: int, classes: Classes) -> int:
    while at < len(data) and not classes[point_at(data, at)] & SPACE:
        at += width_at(data, at)
    return at


@inline
def _letters(data: Bytes, at: int, salt: Keys) -> tuple[int, np.uint64, np.uint64]:
    """Where the ASCII letters from `at` end, their hash, and the power that belongs to the next byte."""
    key = np.uint64(0)
    power = np.uint64(1)
    while at < len(data) and 97 <= data[at] | 32 <= 122:
        key += salt[data[at]] * power
        power *= _BASE
        at += 1
    return at, key, power


@inline
def _put_word(
    data: Bytes, start: int, end: int, key: np.uint64, spans: Spans, keys: Keys, count: int, tables: EnglishTables
) -> int:
    """Write a piece of ASCII letters alone: an exception or one token."""
    part = find_exception(key, end - start, tables)
    if part >= 0:
        return put_parts(data, spans, keys, count, start, part, tables)
    count = put_token(spans, keys, count, start, end, key if key else np.uint64(1))
    spans[count - 1, 2] = LETTERS
    return count


@jit
def _cut_marked_word(
    data: Bytes,
    start: int,
    end: int,
    key: np.uint64,
    power: np.uint64,
    spans: Spans,
    keys: Keys,
    count: int,
    tables: EnglishTables,
) -> int:
    """Cut ASCII letters that one other ASCII character follows: the next most common piece, made short work of."""
    mark = data[end]
    part = find_exception(key + tables.salt[mark] * power, end + 1 - start, tables)
    if part >= 0:
        return put_parts(data, spans, keys, count, start, part, tables)
    if mark == _DOLLAR or suffix_length(data, start, end + 1, tables) != 1:
        return _cut_chunk(data, start, end + 1, spans, keys, count, tables)
    count = _put_word(data, start, end, key, spans, keys, count, tables)
    return put_token(spans, keys, count, end, end + 1, tables.salt[mark])


@jit
def _cut_chunk(data: Bytes, low: int, high: int, spans: Spans, keys: Keys, count: int, tables: EnglishTables) -> int:
    """Take affixes off until an exception is left or nothing more can be taken; cut what is left."""
    top = count + (high - low)  # suffixes wait at the end of the room, the outermost last
    first_suffix = top
    part = exception_at(data, low, high, tables)
    changed = True
    while part < 0 and low < high and changed:
        prefix = prefix_length(data, low, high, tables.classes)
        part = exception_at(data, low + prefix, high, tables) if prefix else -1
        suffix = 0 if part >= 0 else suffix_length(data, low + prefix, high, tables)
        if suffix:
            part = exception_at(data, low, high - suffix, tables)
            prefix = 0 if part >= 0 else prefix
            first_suffix -= 1
            key = hash_span(data, high - suffix, high, tables.salt)
            put_token(spans, keys, first_suffix, high - suffix, high, key)
        if prefix:
            key = hash_span(data, low, low + prefix, tables.salt)
            count = put_token(spans, keys, count, low, low + prefix, key)
        low += prefix
        high -= suffix
        changed = prefix + suffix > 0
        if part < 0 and changed:
            part = exception_at(data, low, high, tables)
    if part >= 0:
        count = put_parts(data, spans, keys, count, low, part, tables)
    elif low < high:
        count = _cut_middle(data, low, high, spans, keys, count, tables)
    for suffix in range(first_suffix, top):
        count = put_token(spans, keys, count, token_start(spans, suffix), token_end(spans, suffix), keys[suffix])
    return count


@jit
def _cut_middle(data: Bytes, low: int, high: int, spans: Spans, keys: Keys, count: int, tables: EnglishTables) -> int:
    """Cut at infixes, unless it is a URL."""
    inner, dotted = _survey(data, low, high, tables.classes)
    if not inner or (dotted and is_url(data, low, high, tables.classes)):
        return put_token(spans, keys, count, low, high, hash_span(data, low, high, tables.salt))
    start = at = low
    before = np.uint32(0)
    while at < high:
        infix = infix_length(data, low, at, high, before, tables.classes)
        if infix and at > low:
            if start < at:
                count = put_token(spans, keys, count, start, at, hash_span(data, start, at, tables.salt))
            count = put_token(spans, keys, count, at, at + infix, hash_span(data, at, at + infix, tables.salt))
            start = at + infix
        at += infix if infix else width_at(data, at)
        before = tables.classes[point_at(data, start_before(data, at))]
    if start < high:
        count = put_token(spans, keys, count, start, high, hash_span(data, start, high, tables.salt))
    return count


@jit
def _survey(data: Bytes, low: int, high: int, classes: Classes) -> tuple[bool, bool]:
    """Whether some character may be an infix, and whether there is a full stop, without which there is no URL."""
    inner = np.uint32(0)
    dotted = False
    at = low
    while at < high:
        inner |= classes[point_at(data, at)] & np.uint32(INNER)
        dotted |= data[at] == _FULL_STOP
        at += width_at(data, at)
    return inner != 0, dotted
