"""Sixty-four bytes at a time, one bit for each: where the white space is, the letters, and the starts of characters.

Words then cost a few operations on whole masks, and no branch that depends on how long a word is.
"""

import numpy as np

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.spaces import space_length
from gristmill.kernels.text.words_of_bytes import HIGHS, ONES, Bytes, count_trailing_zeros, load8, load_up_to_8

BLOCK = 64

_LOW7 = np.uint64(0x7F) * ONES
_GATHER = np.uint64(0x0102040810204080)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def _at_least(byte: int) -> np.uint64:
    """What to add to eight bytes below 0x80 so that the high bits say which are at least this one."""
    return np.uint64(0x80 - byte) * ONES


_TAB, _PAST_RETURN, _SEPARATOR, _PAST_SPACE = map(_at_least, (0x09, 0x0E, 0x1C, 0x21))
_A, _PAST_Z = map(_at_least, (ord("a"), ord("z") + 1))
_CASE = np.uint64(0x20) * ONES


@inline
def gather(flags: np.uint64) -> np.uint64:
    """Return the high bits of eight bytes as eight low bits; all other bits must be zero."""
    return (flags >> np.uint64(7)) * _GATHER >> np.uint64(56)


@inline
def _ascii_space(value: np.uint64) -> np.uint64:
    low = value & _LOW7
    control = (low + _TAB) & ~(low + _PAST_RETURN)
    other = (low + _SEPARATOR) & ~(low + _PAST_SPACE)
    return (control | other) & ~value & HIGHS


@inline
def ascii_letters(value: np.uint64) -> np.uint64:
    """Return the high bit of each byte that is an ASCII letter."""
    folded = (value | _CASE) & _LOW7
    return (folded + _A) & ~(folded + _PAST_Z) & ~value & HIGHS


@inline
def bytes_equal_to(value: np.uint64, byte: int) -> np.uint64:
    """Return the high bit of each byte that equals one below 0x80."""
    apart = value ^ (np.uint64(byte) * ONES)
    return ~((apart & _LOW7) + _LOW7 | apart) & HIGHS


@inline
def word_bits(data: Bytes, start: int, position: int, stop: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return three masks for the 64 bytes from `position` on: in a word, not ASCII, first byte of a long character.

    `start` is where the document begins; what lies at `stop` or behind is white space.
    """
    space = highs = leads = np.uint64(0)
    if position >= stop:
        return space, highs, leads
    for k in range(8):
        here = position + 8 * k
        value = load8(data, here) if here + 8 <= stop else load_up_to_8(data, here, max(here, stop))
        shift = np.uint64(8 * k)
        space |= gather(_ascii_space(value)) << shift
        highs |= gather(value & HIGHS) << shift
        leads |= gather(value & (value << np.uint64(1)) & HIGHS) << shift
    if position + BLOCK > stop:
        space |= _ALL << np.uint64(stop - position)
    if highs:
        space |= _long_spaces(data, start, position, stop, leads)
    return ~space, highs, leads


@inline
def _long_spaces(data: Bytes, start: int, position: int, stop: int, leads: np.uint64) -> np.uint64:
    """Return the bytes of white space characters of more than one byte."""
    space = np.uint64(0)
    for before in range(1, 3):  # a character that began before the block
        if position - before >= start:
            length = space_length(data, position - before, stop)
            if length > before:
                space |= (np.uint64(1) << np.uint64(length - before)) - np.uint64(1)
    while leads:
        at = count_trailing_zeros(leads)
        leads &= leads - np.uint64(1)
        length = space_length(data, position + at, stop)
        if length:
            space |= ((np.uint64(1) << np.uint64(length)) - np.uint64(1)) << np.uint64(at)
    return space
