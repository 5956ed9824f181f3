"""The characters of n-grams of tokens that occurred before, as datatrove counts them, exactly where it matters.

N-grams are compared as their tokens written together, whatever they are cut into; so are *windows*, the first 8, 16,
24 and so on bytes from a token on. An n-gram that occurs twice begins with windows that occur twice: few do, and only
those places are looked at. Windows that were seen before also bound what can be found, and where that is no more than
the limit, nothing is looked for. Tokens are given as `tokenize` writes them.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.distinct import table_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import Bytes, count_characters_in, equal_bytes, hash_bytes, load8, mix
from gristmill.kernels.tokens.layout import REPEAT_ARRAYS, REPEAT_SCRATCH
from gristmill.kernels.tokens.sizes import TOKENS, room_for_tokens

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_MARGIN = 1 - 1e-9  # for rounding in a bound
# The arrays in the scratch space: array k holds scratch[k * room .. (k + 1) * room]. Of each token: a key of its
# longest window so far, the shortest window that occurs only once, and the shortest that was not seen before.
_KEY, _ONCE, _NEW, _PLACE, _TABLE = range(REPEAT_ARRAYS + 1)
_STEP, _LONGEST_WINDOW = 8, 48
_FILTER_PLACES = 8  # a filter has 16 to 32 bits per place
_ENDLESS = 1 << 40


@inline
def _clear(scratch: Longs, room: int, bits: int) -> None:
    """Make a filter of 2**bits bits empty; each 64 are two words, for keys that were noted, and noted twice."""
    for word in range(_TABLE * room, _TABLE * room + max(2, 2 << bits >> 6)):
        scratch[word] = 0


@inline
def _note(scratch: Longs, room: int, key: np.uint64, bits: int) -> bool:
    """Note a key; return whether it, or one that shares its bit, was noted before."""
    slot = key >> np.uint64(64 - bits)
    word = _TABLE * room + 2 * np.int64(slot >> np.uint64(6))
    bit = np.int64(_ONE << (slot & np.uint64(63)))
    seen = scratch[word]
    scratch[word + 1] |= seen & bit
    scratch[word] = seen | bit
    return seen & bit != 0


@inline
def _is_noted_twice(scratch: Longs, room: int, key: np.uint64, bits: int) -> int:
    slot = key >> np.uint64(64 - bits)
    twice = np.uint64(scratch[_TABLE * room + 2 * np.int64(slot >> np.uint64(6)) + 1])
    return np.int64(twice >> (slot & np.uint64(63)) & _ONE)


@inline
def _compare_windows(solid: Bytes, base: int, places: Ints, first: int, count: int, scratch: Longs, room: int) -> None:
    """Say of each token which windows occur once, and which are new; longer ones for fewer and fewer tokens."""
    end = np.int64(places[first + count])
    for i in range(count):
        scratch[_KEY * room + i] = scratch[_NEW * room + i] = 0
        scratch[_PLACE * room + i] = i
    listed, window = count, 0
    while listed and window < _LONGEST_WINDOW:
        window += _STEP
        bits = table_bits(_FILTER_PLACES * listed)
        _clear(scratch, room, bits)
        for p in range(listed):
            i = scratch[_PLACE * room + p]
            at = np.int64(places[first + i])
            was_seen = False
            if at + window <= end:
                key = mix(np.uint64(scratch[_KEY * room + i]) ^ load8(solid, base + at + window - _STEP)) * _MULTIPLIER
                scratch[_KEY * room + i] = np.int64(key)
                was_seen = _note(scratch, room, key, bits)
            is_new = (scratch[_NEW * room + i] == 0) & (not was_seen)
            scratch[_NEW * room + i] = window if is_new else scratch[_NEW * room + i]
        left = 0
        for p in range(listed):
            i = scratch[_PLACE * room + p]
            scratch[_ONCE * room + i] = window
            scratch[_PLACE * room + left] = i
            is_inside = np.int64(places[first + i]) + window <= end
            left += is_inside & _is_noted_twice(scratch, room, np.uint64(scratch[_KEY * room + i]), bits)
        listed = left
    for p in range(listed):
        i = scratch[_PLACE * room + p]
        scratch[_ONCE * room + i] = _ENDLESS
        scratch[_NEW * room + i] = scratch[_NEW * room + i] or _ENDLESS


@inline
def _list_places(
    places: Ints, first: int, count: int, n: int, scratch: Longs, room: int, listed: int
) -> tuple[int, int]:
    """Keep the places at which an n-gram that occurs twice may begin; return how many, and what may repeat in bytes."""
    left = covered = 0
    reached = np.int64(0)
    for p in range(listed):
        i = scratch[_PLACE * room + p]
        if i + n > count:
            break
        at, end = np.int64(places[first + i]), np.int64(places[first + i + n])
        scratch[_PLACE * room + left] = i
        left += end - at < scratch[_ONCE * room + i]
        if end - at < scratch[_NEW * room + i]:
            covered += end - max(at, reached)
            reached = end
    return left, covered


@inline
def _repeated_chars(
    solid: Bytes, base: int, places: Ints, first: int, n: int, scratch: Longs, room: int, listed: int
) -> int:
    """From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token."""
    bits = table_bits(listed)
    for slot in range(_TABLE * room, _TABLE * room + (1 << bits)):
        scratch[slot] = 0
    repeated = reached = 0
    for p in range(listed):
        i = scratch[_PLACE * room + p]
        if i < reached:
            continue
        at = base + np.int64(places[first + i])
        size = base + np.int64(places[first + i + n]) - at
        slot = np.int64(hash_bytes(solid, at, at + size) >> np.uint64(64 - bits))
        while True:
            known = scratch[_TABLE * room + slot] - 1
            if known < 0:
                scratch[_TABLE * room + slot] = i + 1
                break
            there = base + np.int64(places[first + known])
            if base + np.int64(places[first + known + n]) - there == size and equal_bytes(solid, at, there, size):
                repeated += count_characters_in(solid, at, at + size)
                reached = i + n
                break
            slot = (slot + 1) & ((1 << bits) - 1)
    return repeated


@sized(
    **TOKENS,
    wanted=lambda documents: documents,
    chars=lambda documents: documents,
    sizes=lambda num_sizes: num_sizes,
    limits=lambda num_sizes: num_sizes,
    scratch=lambda room, wanted, offsets, documents: (
        REPEAT_SCRATCH * max(room, room_for_tokens(wanted, offsets, documents))
    ),
    counts=lambda documents, num_sizes: documents * num_sizes,
)
def duplicate_ngrams(
    solid: Bytes,
    firsts: Longs,
    places: Ints,
    offsets: Longs,
    documents: int,
    wanted: Bytes,
    chars: Longs,
    sizes: Longs,
    limits: Floats,
    num_sizes: int,
    is_first_enough: int,
    scratch: Longs,
    room: int,
    counts: Longs,
) -> None:
    """Count the characters in n-grams that occurred before, without blanks between tokens.

    wanted           [D]             1 for the texts that are to be measured
    chars            [D]             characters of the texts
    sizes            [num_sizes]     n, in rising order
    limits           [num_sizes]     share of characters that is of interest, 0 for any
    is_first_enough  1 if no more is asked of a text than the first n that is above its limit
    scratch          [REPEAT_SCRATCH * room]  room for 8 more tokens than the longest text has
    counts           [D, num_sizes]  characters; 0 where they cannot be above the limit
    """
    for d in range(documents):
        first, count = offsets[d], offsets[d + 1] - offsets[d] - 1
        if not wanted[d] or count == 0:
            continue
        _compare_windows(solid, firsts[d], places, first, count, scratch, room)
        for i in range(count):
            scratch[_PLACE * room + i] = i
        listed = count
        for column in range(num_sizes):
            n = sizes[column]
            listed, covered = _list_places(places, first, count, n, scratch, room, listed)
            if covered <= limits[column] * chars[d] * _MARGIN:
                continue
            found = _repeated_chars(solid, firsts[d], places, first, n, scratch, room, listed)
            counts[d * num_sizes + column] = found
            if is_first_enough and limits[column] and found / chars[d] > limits[column]:
                break
