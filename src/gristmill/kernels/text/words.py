"""Counts and lengths of words. A word is what lies between white space.

Most is counted on masks of 64 bytes: adding the mask of letters to the mask of words carries a bit out of every word
that holds a letter, into the white space behind it, where it is counted.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import BLOCK, ascii_letters, bytes_equal_to, gather, word_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.words_of_bytes import (
    Bytes,
    count_ones,
    count_trailing_zeros,
    load8,
    load_up_to_8,
    low_bytes,
)

COLUMNS = 6  # words, characters in words, longest word, words with a letter, symbol words, common English words

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
def _letter_and_hash_bits(
    data: Bytes, position: int, stop: int, leads: np.uint64, letters: Bytes
) -> tuple[np.uint64, np.uint64]:
    """Return which of 64 bytes begin letters, and which are #."""
    found = hashes = np.uint64(0)
    for k in range(8):
        here = position + 8 * k
        value = load8(data, here) if here + 8 <= stop else load_up_to_8(data, here, max(here, stop))
        found |= gather(ascii_letters(value)) << np.uint64(8 * k)
        hashes |= gather(bytes_equal_to(value, 0x23)) << np.uint64(8 * k)
    while leads:
        at = count_trailing_zeros(leads)
        leads &= leads - _ONE
        if _is_letter(data, position + at, letters):
            found |= _ONE << np.uint64(at)
    return found, hashes


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
def _measure(data: Bytes, start: int, stop: int, letters: Bytes) -> tuple[int, int, int, int, int, int]:
    words = chars = longest = with_letter = symbols = common = 0
    was_word = has_letter = np.uint64(0)  # the bits carried from one block to the next
    begin = size_before = hashes_before = hashes_seen = 0  # of the word that has begun
    for position in range(start, stop + 1, BLOCK):  # one more at the end where the last word would have none behind it
        inside, highs, leads = word_bits(data, start, position, stop)
        found, hashes = _letter_and_hash_bits(data, position, stop, leads & inside, letters)
        firsts = inside & (~highs | leads)
        carried = inside + has_letter
        summed = carried + found
        with_letter += count_ones(summed & ~inside)
        has_letter = np.uint64(carried < inside) | np.uint64(summed < found)
        before = inside << _ONE | was_word
        starts, ends = inside & ~before, before & ~inside
        was_word = inside >> np.uint64(63)
        words += count_ones(starts)
        events = starts | ends
        while events:
            at = count_trailing_zeros(events)
            below = (_ONE << np.uint64(at)) - _ONE
            size, hash_count = chars + count_ones(firsts & below), hashes_seen + count_ones(hashes & below)
            if starts >> np.uint64(at) & _ONE:
                begin, size_before, hashes_before = position + at, size, hash_count
            else:
                length = position + at - begin
                value = low_bytes(load_up_to_8(data, begin, stop), min(length, 8))
                longest = max(longest, size - size_before)
                common += _is_common(value, length)
                symbols += _is_ellipsis(value, length)
                if hash_count > hashes_before:
                    symbols += 2 * _hash_runs(data, begin, position + at) > size - size_before
            events &= events - _ONE
        chars += count_ones(firsts)
        hashes_seen += count_ones(hashes)
    return words, chars, longest, with_letter, symbols, common


def count_words(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    letters: Bytes,
    counts: NDArray[np.int64],
) -> None:
    """Measure the words of each document.

    letters  [0x8000]  one bit for each of the first 0x40000 characters: whether it is a letter. There are none beyond
    counts   [D, 6]    one row per document
    """
    for d in range(documents):
        words, chars, longest, with_letter, symbols, common = _measure(data, starts[d], stops[d], letters)
        row = d * COLUMNS
        counts[row], counts[row + 1], counts[row + 2] = words, chars, longest
        counts[row + 3], counts[row + 4], counts[row + 5] = with_letter, symbols, common
