"""Repeated n-grams of tokens, as datatrove's Gopher repetition rules count them, exactly.

The most frequent n-gram is one of tokens: those are numbered, and counted as words are in `kernels.text.ngrams`.
Repeats are n-grams of which only the bytes count, whatever tokens they are cut into; so they are looked for in the text
without white space. Few places are looked at: an n-gram that occurs twice has first bytes that occur twice.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.distinct import table_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.ngrams import CHARS, COUNT, WORD, number_ngrams, repeated_ngrams, repeated_words, top_ngram
from gristmill.kernels.text.words_of_bytes import Bytes, copy_bytes, equal_bytes, hash_bytes, load8, mix
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.lexicon import Words, number

SCRATCH_PER_TOKEN = 14  # as in `kernels.text.ngrams`
WINDOW = 16  # bytes by which places are told apart first

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LOW_HALF = np.uint64(0xFFFFFFFF)
# The arrays of `duplicate_ngrams` in the scratch space: array k holds scratch[k * room .. (k + 1) * room].
_AT, _CHARS_BEFORE, _PLACE, _IS_REPEATED, _TABLE = range(5)


@inline
def _number_tokens(lexicon: Words, ids: Ints, first: int, count: int, scratch: Longs, room: int) -> None:
    """Give each token the place of its first occurrence, each first occurrence its count, and the characters before."""
    turn = lexicon[lay.TURN] + np.uint64(1)
    lexicon[lay.TURN] = turn
    chars = 0
    for i in range(count):
        record = number(lexicon, lay.RECORDS_AT) + lay.RECORD * np.int64(ids[first + i])
        seen = lexicon[record + 3]
        place = i
        if seen >> np.uint64(32) == turn:
            place = np.int64(seen & _LOW_HALF)
        else:
            lexicon[record + 3] = turn << np.uint64(32) | np.uint64(i)
            scratch[COUNT * room + i] = 0
        scratch[COUNT * room + place] += 1
        scratch[WORD * room + i] = place
        scratch[CHARS * room + i] = chars
        chars += np.int64(lexicon[record + 1]) >> lay.FLAG_BITS
    scratch[CHARS * room + count] = chars


def top_ngrams(
    offsets: Longs,
    ids: Ints,
    documents: int,
    lexicon: Words,
    wanted: Bytes,
    sizes: Longs,
    num_sizes: int,
    scratch: Longs,
    room: int,
    counts: Longs,
) -> None:
    """Count times length, joined with blanks, of the most frequent n-gram; of several, of the one seen first.

    wanted   [D]             1 for the texts that are to be measured
    sizes    [num_sizes]     n, in rising order
    scratch  [14 * room]     room for 8 more tokens than the longest text has
    counts   [D, num_sizes]  characters; 0 without n-grams
    """
    for d in range(documents):
        first, count = offsets[d], offsets[d + 1] - offsets[d]
        if not wanted[d]:
            continue
        _number_tokens(lexicon, ids, first, count, scratch, room)
        places = repeated_words(scratch, room, count)
        column = 0
        for n in range(1, min(sizes[num_sizes - 1], count) + 1):
            if places and n > 1:
                number_ngrams(scratch, room, n, places)
                places = repeated_ngrams(scratch, room, n, places)
            if sizes[column] == n:
                best, times = top_ngram(scratch, room, places)
                size = scratch[CHARS * room + best + n] - scratch[CHARS * room + best] + n - 1
                counts[d * num_sizes + column] = times * size
                column += 1


@inline
def _write_together(
    data: Bytes,
    text: int,
    lexicon: Words,
    ids: Ints,
    places: Ints,
    first: int,
    count: int,
    scratch: Longs,
    room: int,
    out: Bytes,
) -> None:
    """Write the tokens of a text without white space, and where each begins there."""
    at = chars = 0
    for i in range(count):
        record = number(lexicon, lay.RECORDS_AT) + lay.RECORD * np.int64(ids[first + i])
        start = text + np.int64(places[first + i])
        scratch[_AT * room + i], scratch[_CHARS_BEFORE * room + i] = at, chars
        at = copy_bytes(data, start, start + np.int64(lexicon[record + 2]), out, at)
        chars += np.int64(lexicon[record + 1]) >> lay.FLAG_BITS
    scratch[_AT * room + count], scratch[_CHARS_BEFORE * room + count] = at, chars


@inline
def _clear(scratch: Longs, room: int, bits: int) -> None:
    for slot in range(_TABLE * room, _TABLE * room + (1 << bits)):
        scratch[slot] = 0


@inline
def _find_repeated_windows(out: Bytes, count: int, scratch: Longs, room: int) -> None:
    """Say of each token whether the bytes from it on occur twice; at the end of a text, where they are fewer, yes."""
    bits = table_bits(count)
    _clear(scratch, room, bits)
    end = scratch[_AT * room + count]
    for i in range(count):
        at = scratch[_AT * room + i]
        scratch[_IS_REPEATED * room + i] = at + WINDOW > end
        if at + WINDOW > end:
            continue
        one, other = load8(out, at), load8(out, at + 8)
        slot = np.int64(mix(one * _MULTIPLIER ^ other) * _MULTIPLIER >> np.uint64(64 - bits))
        while True:
            known = scratch[_TABLE * room + slot] - 1
            if known < 0:
                scratch[_TABLE * room + slot] = i + 1
                break
            there = scratch[_AT * room + known]
            if load8(out, there) == one and load8(out, there + 8) == other:
                scratch[_IS_REPEATED * room + i] = scratch[_IS_REPEATED * room + known] = 1
                break
            slot = (slot + 1) & ((1 << bits) - 1)


@inline
def _list_places(scratch: Longs, room: int, count: int, n: int) -> int:
    """List the tokens with which an n-gram, or a longer one, might begin that occurs twice; return how many."""
    listed = 0
    for i in range(count - n + 1):
        size = scratch[_AT * room + i + n] - scratch[_AT * room + i]
        scratch[_PLACE * room + listed] = i
        listed += scratch[_IS_REPEATED * room + i] | (size < WINDOW)
    return listed


@inline
def _repeated_chars(out: Bytes, scratch: Longs, room: int, listed: int, count: int, n: int) -> int:
    """From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token."""
    bits = table_bits(listed)
    _clear(scratch, room, bits)
    repeated = reached = 0
    for p in range(listed):
        i = scratch[_PLACE * room + p]
        if i < reached or i + n > count:
            continue
        at = scratch[_AT * room + i]
        size = scratch[_AT * room + i + n] - at
        if not scratch[_IS_REPEATED * room + i] and size >= WINDOW:
            continue
        slot = np.int64(hash_bytes(out, at, at + size) >> np.uint64(64 - bits))
        while True:
            known = scratch[_TABLE * room + slot] - 1
            if known < 0:
                scratch[_TABLE * room + slot] = i + 1
                break
            there = scratch[_AT * room + known]
            if scratch[_AT * room + known + n] - there == size and equal_bytes(out, at, there, size):
                repeated += scratch[_CHARS_BEFORE * room + i + n] - scratch[_CHARS_BEFORE * room + i]
                reached = i + n
                break
            slot = (slot + 1) & ((1 << bits) - 1)
    return repeated


def duplicate_ngrams(
    data: Bytes,
    starts: Longs,
    offsets: Longs,
    ids: Ints,
    places: Ints,
    documents: int,
    lexicon: Words,
    wanted: Bytes,
    sizes: Longs,
    num_sizes: int,
    scratch: Longs,
    room: int,
    out: Bytes,
    counts: Longs,
) -> None:
    """Count the characters in n-grams that occurred before, without blanks between tokens.

    wanted, sizes, scratch, counts   as for `top_ngrams`
    out                              room for the longest text and eight bytes more
    """
    for d in range(documents):
        first, count = offsets[d], offsets[d + 1] - offsets[d]
        if not wanted[d]:
            continue
        _write_together(data, starts[d], lexicon, ids, places, first, count, scratch, room, out)
        _find_repeated_windows(out, count, scratch, room)
        listed = _list_places(scratch, room, count, sizes[0])
        for column in range(num_sizes):
            if listed:
                counts[d * num_sizes + column] = _repeated_chars(out, scratch, room, listed, count, sizes[column])
