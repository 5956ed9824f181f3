"""White space in UTF-8, as `str.isspace` and `str.split` have it, and the words between it.

White space beyond ASCII is U+0085, U+00A0, U+1680, U+2000–200A, U+2028, U+2029, U+202F, U+205F and U+3000: a test
compares with `str.isspace` for every character there is.
"""

import numpy as np

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.words_of_bytes import HIGHS, ONES, Bytes, count_trailing_zeros, load8

_SPACE_PLUS_1 = np.uint64(0x21) * ONES


@inline
def space_length(data: Bytes, position: int, stop: int) -> int:  # one branch for each lead byte
    """Return the bytes of the white space character that begins here, 0 if none does."""
    byte = data[position]
    if byte <= 0x20:
        return 1 if byte == 0x20 or 0x09 <= byte <= 0x0D or 0x1C <= byte <= 0x1F else 0
    if byte < 0xC2 or byte > 0xE3:
        return 0
    if byte == 0xC2:
        return 2 if data[position + 1] in (0x85, 0xA0) else 0
    if byte < 0xE1 or position + 2 >= stop:
        return 0
    second, third = data[position + 1], data[position + 2]
    if byte == 0xE2:
        if second == 0x80:
            return 3 if third <= 0x8A or third in (0xA8, 0xA9, 0xAF) else 0
        return 3 if second == 0x81 and third == 0x9F else 0
    if byte == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    return 3 if second == 0x80 and third == 0x80 else 0


@inline
def space_length_before(data: Bytes, start: int, position: int) -> int:
    """Return the bytes of the white space character that ends just before `position`, 0 if none does."""
    byte = data[position - 1]
    if byte < 0x80:
        return space_length(data, position - 1, position)
    if position - 2 >= start and data[position - 2] == 0xC2:
        return space_length(data, position - 2, position)
    if position - 3 >= start and 0xE1 <= data[position - 3] <= 0xE3:
        return space_length(data, position - 3, position)
    return 0


@inline
def word_start(data: Bytes, position: int, stop: int) -> int:
    """Return where the next word begins, `stop` if there is none."""
    while position < stop:
        if 0x21 <= data[position] < 0x80:
            return position
        length = space_length(data, position, stop)
        if length == 0:
            return position
        position += length
    return stop


@inline
def last_word_stop(data: Bytes, start: int, stop: int) -> int:
    """Return where the last word ends, `start` if there is none."""
    length = space_length_before(data, start, stop) if start < stop else 0
    while length:
        stop -= length
        length = space_length_before(data, start, stop) if start < stop else 0
    return stop


@inline
def word_stop(data: Bytes, position: int, stop: int) -> int:
    """Return where the word that begins here ends."""
    while position + 8 <= stop:
        value = load8(data, position)
        # The lowest flagged byte is the first that is not printable ASCII; bytes above it may be flagged by mistake.
        flags = (((value - _SPACE_PLUS_1) & ~value) | value) & HIGHS
        if not flags:
            position += 8
            continue
        position += count_trailing_zeros(flags) >> 3
        if space_length(data, position, stop):
            return position
        position += 1
        while position < stop and data[position] >= 0x80 and not space_length(data, position, stop):
            position += 1  # most text that is not ASCII goes on not being ASCII
    while position < stop and not space_length(data, position, stop):
        position += 1
    return position
