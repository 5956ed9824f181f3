"""Counts and lengths of words. A word is what lies between white space.

Most is counted on masks of 64 bytes: adding the mask of letters to the mask of words carries a bit out of every word
that holds a letter, into the white space after it, where it is counted.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import block_at, range_bits, word_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK, LETTER_BYTES
from gristmill.kernels.text.layout import WORD_COLUMNS as COLUMNS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import (
    Bytes,
    count_characters_in,
    count_ones,
    count_trailing_zeros,
    load_up_to_8,
    low_bytes,
)

_ONE = np.uint64(1)


def _packed(*texts: str) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(int.from_bytes(text.encode(), "little")) for text in texts)


_BE, _TO, _OF = _packed("be", "to", "of")
_THE, _AND = _packed("the", "and")
_THAT, _HAVE, _WITH = _packed("that", "have", "with")
_DOTS, _ELLIPSIS, _DASH = _packed("...", "…", "-»")
_IN_BRACKETS, _IN_PARENTHESES, _IN_BRACKETS_2 = _packed("[...]", "(...)", "[…]")


@inline
def _is_letter(data: Bytes, position: int, letters: Bytes) -> bool:
    """Whether the character of two to four bytes that begins here is a letter."""
    lead = np.int64(data[position])
    code = np.int64(data[position + 1]) & 0x3F
    if lead < 0xE0:
        code |= (lead & 0x1F) << 6
    elif lead < 0xF0:
        code = (lead & 0x0F) << 12 | code << 6 | np.int64(data[position + 2]) & 0x3F
    else:
        code = (lead & 0x07) << 18 | code << 12 | (np.int64(data[position + 2]) & 0x3F) << 6
        code |= np.int64(data[position + 3]) & 0x3F
    return bool(code < 0x40000 and letters[code >> 3] >> (code & 7) & 1)


@inline
def _long_letter_bits(data: Bytes, position: int, leads: np.uint64, letters: Bytes) -> np.uint64:
    """Return which of 64 bytes begin letters beyond ASCII."""
    found = np.uint64(0)
    while leads:
        at = count_trailing_zeros(leads)
        leads &= leads - _ONE
        if _is_letter(data, position + at, letters):
            found |= _ONE << np.uint64(at)
    return found


@inline
def _is_common(value: np.uint64, length: int) -> int:
    two = (value == _BE) | (value == _TO) | (value == _OF)
    three = (value == _THE) | (value == _AND)
    four = (value == _THAT) | (value == _HAVE) | (value == _WITH)
    return (two & (length == 2)) | (three & (length == 3)) | (four & (length == 4))


@inline
def _is_ellipsis(value: np.uint64, length: int) -> int:
    three = (value == _DOTS) | (value == _ELLIPSIS) | (value == _DASH)
    five = (value == _IN_BRACKETS) | (value == _IN_PARENTHESES) | (value == _IN_BRACKETS_2)
    return (three & (length == 3)) | (five & (length == 5))


@inline
def _hash_runs(data: Bytes, start: int, stop: int) -> int:
    runs = 0
    for i in range(start, stop):
        runs += data[i] == 0x23 and (i == start or data[i - 1] != 0x23)
    return runs


@inline
def _measure_word(data: Bytes, start: int, end: int, stop: int, is_plain: bool) -> tuple[int, int, int]:
    """Return whether a word is common, whether it is a symbol, and its characters."""
    length = end - start
    value = low_bytes(load_up_to_8(data, start, stop), min(length, 8))
    if is_plain:
        return _is_common(value, length), _is_ellipsis(value, length), length
    size = count_characters_in(data, start, end)
    is_symbol = _is_ellipsis(value, length) | (2 * _hash_runs(data, start, end) > size)
    return _is_common(value, length), is_symbol, size


@inline
def _measure(data: Bytes, start: int, stop: int, letters: Bytes) -> tuple[int, int, int, int, int, int]:
    words = chars = longest = with_letter = symbols = common = 0
    was_word = has_letter = np.uint64(0)  # the bits carried from one block to the next
    begin = start  # of the word that has begun
    is_plain = True  # neither # nor a long character in this block or the word it begins in
    for position in range(start, stop, BLOCK):
        inside, highs, leads = word_bits(data, start, position, stop)
        block = block_at(position, stop)
        hashes = range_bits(data, block, 0x23, 1)
        found = range_bits(data, block, 0x61, 26) | range_bits(data, block, 0x41, 26)
        found |= _long_letter_bits(data, position, leads & inside, letters)
        firsts = inside & (~highs | leads)
        carried = inside + has_letter
        summed = carried + found
        with_letter += count_ones(summed & ~inside)
        has_letter = np.uint64(carried < inside) | np.uint64(summed < found)
        before = inside << _ONE | was_word
        starts, ends = inside & ~before, before & ~inside
        is_plain = (highs | hashes) == 0 and (is_plain or was_word == 0)
        if was_word == 0 and starts:
            at = count_trailing_zeros(starts)
            starts &= starts - _ONE
            begin = position + at
        while ends:
            at = count_trailing_zeros(ends)
            ends &= ends - _ONE
            one_common, one_symbol, size = _measure_word(data, begin, position + at, stop, is_plain)
            words, common, symbols, longest = words + 1, common + one_common, symbols + one_symbol, max(longest, size)
            if starts:
                at = count_trailing_zeros(starts)
                starts &= starts - _ONE
                begin = position + at
        was_word = inside >> np.uint64(63)
        chars += count_ones(firsts)
    if was_word:
        one_common, one_symbol, size = _measure_word(data, begin, stop, stop, is_plain)
        words, common, symbols, longest = words + 1, common + one_common, symbols + one_symbol, max(longest, size)
        with_letter += np.int64(has_letter)
    return words, chars, longest, with_letter, symbols, common


@sized(
    **TEXTS,
    letters=lambda: LETTER_BYTES,
    counts=lambda documents: documents * COLUMNS,
)
def count_words(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    letters: Bytes,
    counts: NDArray[np.int64],
) -> None:
    """Measure the words of each document.

    letters  [LETTER_BYTES]  one bit for each character, up to the last letter: whether it is one
    counts   [D, 6]          one row per document
    """
    for d in range(documents):
        words, chars, longest, with_letter, symbols, common = _measure(data, starts[d], stops[d], letters)
        row = d * COLUMNS
        counts[row], counts[row + 1], counts[row + 2] = words, chars, longest
        counts[row + 3], counts[row + 4], counts[row + 5] = with_letter, symbols, common
