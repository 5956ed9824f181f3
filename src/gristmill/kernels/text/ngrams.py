"""Repeated word n-grams, exactly, for all n at once.

An n-gram is known by the place of its first occurrence. Two n-grams are equal if their first n - 1 words are equal and
their last ones are, so the table for n compares pairs of places, never words; and an n-gram can only be repeated where
the (n - 1)-grams it begins and ends with are, so each n looks at fewer places than the one before. Words are compared
byte by byte, so nothing depends on chance. In prose the work for n = 2 to 10 is about three tables of words, not nine.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import word_bits
from gristmill.kernels.text.distinct import table_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK, NGRAM_ARRAYS, NGRAM_SCRATCH, TOP
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import (
    HIGHS,
    Bytes,
    count_characters_in,
    count_trailing_zeros,
    equal_bytes,
    hash_bytes,
    load8,
    load_up_to_8,
    low_bytes,
    mix,
)

Longs = NDArray[np.int64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)

# The arrays in the scratch space: array k holds scratch[k * room .. (k + 1) * room].
START, STOP, KEY, CHARS, WORD, _CLASS, _NEW, COUNT, _PLACE, _TABLE = range(NGRAM_ARRAYS + 1)
_LEVEL = KEY  # the keys are not needed once words are numbered


@inline
def split(data: Bytes, start: int, stop: int, scratch: Longs, room: int) -> int:
    """Find the words, write where they start to scratch[:room] and where they stop to the next; return how many.

    There must be room for one more than there are.
    """
    starts = stops = 0
    was_word = np.uint64(0)
    for position in range(start, stop, BLOCK):
        inside, _, _ = word_bits(data, start, position, stop)
        before = inside << np.uint64(1) | was_word
        was_word = inside >> np.uint64(63)
        begins, ends = inside & ~before, before & ~inside
        while begins:
            scratch[START * room + starts] = position + count_trailing_zeros(begins)
            begins &= begins - np.uint64(1)
            starts += 1
        while ends:
            scratch[STOP * room + stops] = position + count_trailing_zeros(ends)
            ends &= ends - np.uint64(1)
            stops += 1
    scratch[STOP * room + stops] = stop  # of a last word with nothing after it
    return starts


@inline
def make_keys(data: Bytes, stop: int, scratch: Longs, room: int, words: int) -> None:
    """Give each word its key, and say how many characters of words are before it."""
    chars = 0
    for i in range(words):
        start, end = scratch[START * room + i], scratch[STOP * room + i]
        length = end - start
        value = low_bytes(load_up_to_8(data, start, stop), min(length, 8))
        highs = value
        if length > 8:
            # Most long words are not very long: two loads that overlap are all of it.
            tail = load8(data, end - 8)
            highs |= tail
            value = mix(value * _MULTIPLIER ^ tail) if length <= 16 else hash_bytes(data, start, end)
        size = count_characters_in(data, start, end) if highs & HIGHS or length > 16 else length
        scratch[KEY * room + i] = np.int64(value)
        scratch[CHARS * room + i] = chars
        chars += size
    scratch[CHARS * room + words] = chars


@inline
def _same_word(data: Bytes, scratch: Longs, room: int, one: int, other: int) -> bool:
    if scratch[KEY * room + one] != scratch[KEY * room + other]:
        return False
    start, other_start = scratch[START * room + one], scratch[START * room + other]
    length = scratch[STOP * room + one] - start
    if length != scratch[STOP * room + other] - other_start:
        return False
    return length <= 8 or equal_bytes(data, start, other_start, length)


@inline
def _clear(scratch: Longs, room: int, bits: int) -> None:
    for slot in range(_TABLE * room, _TABLE * room + (1 << bits)):
        scratch[slot] = 0


@inline
def number_words(data: Bytes, scratch: Longs, room: int, words: int) -> None:
    """Give each word the place of its first occurrence, and each first occurrence its count."""
    bits = table_bits(words)
    _clear(scratch, room, bits)
    for i in range(words):
        slot = np.int64(mix(np.uint64(scratch[KEY * room + i])) * _MULTIPLIER >> np.uint64(64 - bits))
        while True:
            other = scratch[_TABLE * room + slot] - 1
            if other < 0:
                scratch[_TABLE * room + slot] = i + 1
                scratch[WORD * room + i] = i
                scratch[COUNT * room + i] = 1
                break
            if _same_word(data, scratch, room, i, other):
                scratch[WORD * room + i] = other
                scratch[COUNT * room + other] += 1
                break
            slot = (slot + 1) & ((1 << bits) - 1)


@inline
def repeated_words(scratch: Longs, room: int, words: int) -> int:
    """List the places of words that occur more than once; return how many there are."""
    places = 0
    for i in range(words):
        first = scratch[WORD * room + i]
        is_repeated = scratch[COUNT * room + first] > 1
        scratch[_CLASS * room + i] = first
        scratch[_LEVEL * room + i] = 1 if is_repeated else 0
        scratch[_PLACE * room + places] = i
        places += is_repeated
    scratch[_LEVEL * room + words] = 0
    return places


@inline
def number_ngrams(scratch: Longs, room: int, n: int, places: int) -> None:
    """Give the n-gram at each listed place the place of its first occurrence, -1 where it cannot be repeated."""
    bits = table_bits(places)
    _clear(scratch, room, bits)
    for p in range(places):
        i = scratch[_PLACE * room + p]
        if scratch[_LEVEL * room + i + 1] < n - 1:  # also where fewer than n words are left
            scratch[_NEW * room + i] = -1
            continue
        head, last = scratch[_CLASS * room + i], scratch[WORD * room + i + n - 1]
        slot = np.int64(mix(np.uint64(head << 32 | last)) * _MULTIPLIER >> np.uint64(64 - bits))
        while True:
            other = scratch[_TABLE * room + slot] - 1
            if other < 0:
                scratch[_TABLE * room + slot] = i + 1
                scratch[_NEW * room + i] = i
                scratch[COUNT * room + i] = 1
                break
            if scratch[_CLASS * room + other] == head and scratch[WORD * room + other + n - 1] == last:
                scratch[_NEW * room + i] = other
                scratch[COUNT * room + other] += 1
                break
            slot = (slot + 1) & ((1 << bits) - 1)


@inline
def repeated_ngrams(scratch: Longs, room: int, n: int, places: int) -> int:
    """Keep the places whose n-gram occurs more than once; return how many are left."""
    left = 0
    for p in range(places):
        i = scratch[_PLACE * room + p]
        first = scratch[_NEW * room + i]
        # Which ones stay cannot be predicted, so there is no branch: every other one would be mispredicted.
        stays = (first >= 0) & (scratch[COUNT * room + max(first, 0)] > 1)
        scratch[_CLASS * room + i] = first if stays else scratch[_CLASS * room + i]
        scratch[_LEVEL * room + i] = n if stays else n - 1
        scratch[_PLACE * room + left] = i
        left += stays
    return left


@inline
def top_ngram(scratch: Longs, room: int, places: int) -> tuple[int, int]:
    """Return the first place of the most frequent n-gram, of several the one seen first, and how often it occurs."""
    best, most = 0, 1
    for p in range(places):
        i = scratch[_PLACE * room + p]
        if scratch[_CLASS * room + i] == i and scratch[COUNT * room + i] > most:
            best, most = i, scratch[COUNT * room + i]
    return best, most


@inline
def _removed_chars(data: Bytes, scratch: Longs, room: int, words: int, n: int, top: int) -> int:
    """Count the characters that vanish when the n-gram, joined with single spaces, is deleted wherever it stands.

    That includes places where its first word ends a longer word and its last one begins a longer word.
    """
    first_start, first_stop = scratch[START * room + top], scratch[STOP * room + top]
    last_start, last_stop = scratch[START * room + top + n - 1], scratch[STOP * room + top + n - 1]
    first_length, last_length = first_stop - first_start, last_stop - last_start
    first_end, last_begin = data[first_stop - 1], data[last_start]
    second = scratch[WORD * room + top + 1]
    deleted_to = np.int64(-1)
    found = 0
    for i in range(words - n + 1):
        if n > 2 and scratch[WORD * room + i + 1] != second:
            continue
        stop, start = scratch[STOP * room + i], scratch[START * room + i + n - 1]
        if (data[start] != last_begin) | (data[stop - 1] != first_end):
            continue
        if not _stands_between(data, scratch, room, i, n, top):
            continue
        begin = stop - first_length
        if begin < scratch[START * room + i] or begin < deleted_to:
            continue
        if scratch[STOP * room + i + n - 1] - start < last_length:
            continue
        if equal_bytes(data, begin, first_start, first_length) and equal_bytes(data, start, last_start, last_length):
            found += 1
            deleted_to = start + last_length
    size = scratch[CHARS * room + top + n] - scratch[CHARS * room + top] + n - 1
    return found * size


@inline
def _stands_between(data: Bytes, scratch: Longs, room: int, i: int, n: int, top: int) -> bool:
    """Whether the words between the first and the last are those of the n-gram, and one space is between all."""
    for k in range(1, n):
        gap = scratch[STOP * room + i + k - 1]
        if scratch[START * room + i + k] != gap + 1 or data[gap] != 0x20:
            return False
        if k < n - 1 and scratch[WORD * room + i + k] != scratch[WORD * room + top + k]:
            return False
    return True


@inline
def _duplicate_chars(scratch: Longs, room: int, n: int, places: int) -> int:
    """Count the characters of repeats, those of overlapping repeats once, and the spaces within them."""
    chars = 0
    counted_to = 0
    for p in range(places):
        i = scratch[_PLACE * room + p]
        if scratch[_CLASS * room + i] != i:
            new = max(i, counted_to)
            chars += scratch[CHARS * room + i + n] - scratch[CHARS * room + new] + min(i + n - new, n - 1)
            counted_to = i + n
    return chars


@sized(
    **TEXTS,
    words=lambda documents: documents,
    asked=lambda questions: 2 * questions,
    scratch=lambda room: NGRAM_SCRATCH * room,
    counts=lambda documents, questions: documents * questions,
)
def count_ngrams(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    documents: int,
    first: int,
    words: Longs,
    asked: Longs,
    questions: int,
    scratch: Longs,
    room: int,
    counts: Longs,
) -> int:
    """Measure the n-grams of documents from `first` on; return the first that `scratch` has no room for, D at the end.

    words    [D]             words of each document, or more
    asked    [questions, 2]  TOP or DUPLICATE, and n ≥ 2, in order of n
    scratch  [NGRAM_SCRATCH * room]  room for documents of up to `room` - 8 words
    counts   [D, questions]  characters, 0 where a document has fewer than n words
    """
    largest = asked[2 * questions - 1]
    for d in range(first, documents):
        if words[d] + 8 > room:
            return d
        row = d * questions
        for q in range(questions):
            counts[row + q] = 0
        total = split(data, starts[d], stops[d], scratch, room)
        make_keys(data, stops[d], scratch, room, total)
        number_words(data, scratch, room, total)
        places = repeated_words(scratch, room, total)
        q = 0
        for n in range(2, min(largest, total) + 1):
            if places:
                number_ngrams(scratch, room, n, places)
                places = repeated_ngrams(scratch, room, n, places)
            while q < questions and asked[2 * q + 1] == n:
                if asked[2 * q] == TOP:
                    top, _ = top_ngram(scratch, room, places)
                    counts[row + q] = _removed_chars(data, scratch, room, total, n, top)
                else:
                    counts[row + q] = _duplicate_chars(scratch, room, n, places)
                q += 1
    return documents
