"""JSON strings to UTF-8: quotes and escapes taken out, 64 bytes at a time where there are none, then eight."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import copy_block, range_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK
from gristmill.kernels.text.sizes import bytes_of_texts, sized
from gristmill.kernels.text.words_of_bytes import HIGHS, ONES, Bytes, count_trailing_zeros, load8, store8

_NO_SHIFT = np.uint64(0)
_BACKSLASHES = np.uint64(ord("\\")) * ONES


@inline
def _hex4(data: Bytes, position: int) -> int:
    code = 0
    for k in range(4):
        byte = np.int64(data[position + k])
        code = code << 4 | (byte & 15) + (9 if byte > 0x39 else 0)
    return code


@inline
def _put(out: Bytes, at: int, code: int) -> int:
    """Write a character; return where the next one goes."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at], out[at + 1] = 0xC0 | code >> 6, 0x80 | code & 63
        return at + 2
    if code < 0x10000:
        out[at], out[at + 1], out[at + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
        return at + 3
    out[at], out[at + 1] = 0xF0 | code >> 18, 0x80 | code >> 12 & 63
    out[at + 2], out[at + 3] = 0x80 | code >> 6 & 63, 0x80 | code & 63
    return at + 4


@inline
def _code_point(data: Bytes, position: int, stop: int) -> tuple[int, int]:
    """Return the character that the escape \\uXXXX here stands for, -1 for half a surrogate pair, and its length."""
    code = _hex4(data, position + 2)
    if not 0xD800 <= code < 0xE000:
        return code, 6
    if code >= 0xDC00 or position + 12 > stop or data[position + 6] != 0x5C or data[position + 7] != 0x75:
        return -1, 6
    low = _hex4(data, position + 8)
    return (0x10000 + ((code - 0xD800) << 10) + low - 0xDC00, 12) if 0xDC00 <= low < 0xE000 else (-1, 6)


@inline
def _unescape_one(data: Bytes, position: int, stop: int, meanings: Bytes, out: Bytes, at: int) -> tuple[int, int]:
    """Write what the escape here stands for; return the places after both, the second -1 for half a surrogate pair."""
    if data[position + 1] != 0x75:
        out[at] = meanings[data[position + 1]]
        return position + 2, at + 1
    code, length = _code_point(data, position, stop)
    return position + length, _put(out, at, code) if code >= 0 else -1


@inline
def _unescape(data: Bytes, position: int, stop: int, meanings: Bytes, out: Bytes, at: int) -> int:
    """Write what stands between the quotes; return where it ends, or -1 if it has half a surrogate pair."""
    while position + BLOCK <= stop:
        copy_block(data, position, out, at)  # what is written too far is overwritten
        escapes = range_bits(data, (position, _NO_SHIFT), 0x5C, 1)
        plain = count_trailing_zeros(escapes) if escapes else BLOCK
        position += plain
        at += plain
        if not escapes:
            continue
        position, at = _unescape_one(data, position, stop, meanings, out, at)
        if at < 0:
            return -1
    while position + 8 <= stop:
        value = load8(data, position)
        store8(out, at, value)  # what is written too far is overwritten
        apart = value ^ _BACKSLASHES
        found = (apart - ONES) & ~apart & HIGHS
        plain = count_trailing_zeros(found) >> 3 if found else 8
        position += plain
        at += plain
        if not found:
            continue
        position, at = _unescape_one(data, position, stop, meanings, out, at)
        if at < 0:
            return -1
    while position < stop:
        if data[position] != 0x5C:
            out[at] = data[position]
            at, position = at + 1, position + 1
            continue
        position, at = _unescape_one(data, position, stop, meanings, out, at)
        if at < 0:
            return -1
    return at


@sized(
    starts=lambda documents: documents,
    stops=lambda documents: documents,
    meanings=lambda: 256,
    out=lambda first, starts, stops, documents: first + bytes_of_texts(starts, stops, documents) + BLOCK,
    bounds=lambda documents: documents + 1,
    nulls=lambda documents: documents,
)
def unescape_strings(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    meanings: Bytes,
    out: Bytes,
    first: int,
    bounds: NDArray[np.int64],
    nulls: Bytes,
) -> int:
    """Unescape valid JSON texts, each a string or null; return 1, or 0 if one is something else or half a character.

    starts, stops  [D]      where the texts are, their quotes included; a text without bytes counts as null
    meanings       [256]    what the letter after a backslash stands for
    out            [...]    room for all texts and 64 bytes more, from `first` on
    bounds         [D + 1]  where each text begins in `out`, and the last one ends
    nulls          [D]      1 for null
    """
    at = first
    for d in range(documents):
        bounds[d] = at
        start, stop = starts[d], stops[d]
        nulls[d] = start == stop or data[start] == 0x6E
        if nulls[d]:
            continue
        if data[start] != 0x22:
            return 0
        at = _unescape(data, start + 1, stop - 1, meanings, out, at)
        if at < 0:
            return 0
    bounds[documents] = at
    return 1
