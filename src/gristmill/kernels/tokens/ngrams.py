"""Repeated n-grams of tokens, as datatrove's Gopher repetition rules count them.

N-grams are compared by 64-bit hashes: in a text of a million tokens two different ones share a hash with a probability
below one in ten million.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.english_tables import BASE
from gristmill.kernels.tokens.jit import jit
from gristmill.kernels.tokens.tokenize import Tokens

_BASE = np.uint64(BASE)
_INVERSE = np.uint64(pow(BASE, -1, 2**64))
_STEP = np.uint64(0xD6E8FEB86659FD93)
_FOLD = np.uint64(32)


def top_ngram_chars(tokens: Tokens, n: int, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[D]: count times length of the most frequent n-gram, joined with blanks; 0 without n-grams
    and where not `wanted`.

    Of several most frequent n-grams the one seen first counts, as in `Counter.most_common`.
    """
    return _top(tokens.offsets, tokens.hashes, tokens.chars, n, wanted)


def duplicate_ngram_chars(tokens: Tokens, sizes: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[D, len(sizes)]: characters in n-grams that occurred before.

    From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token. N-grams
    are compared as their tokens written together without blanks.
    """
    return _duplicates(tokens.offsets, tokens.hashes, tokens.chars, tokens.bytes, sizes, wanted)


@jit
def _slots(tokens: int) -> int:
    size = 64
    while size < 2 * tokens:
        size *= 2
    return size


@jit
def _scramble(key: np.uint64) -> np.uint64:
    key = (key ^ (key >> _FOLD)) * _STEP
    key = (key ^ (key >> _FOLD)) * _STEP
    key = key ^ (key >> _FOLD)
    return key if key else np.uint64(1)


@jit
def _longest(offsets: NDArray[np.int64]) -> int:
    longest = 0
    for text in range(len(offsets) - 1):
        longest = max(longest, offsets[text + 1] - offsets[text])
    return longest


@jit
def _top(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    chars: NDArray[np.int32],
    n: int,
    wanted: NDArray[np.bool_],
) -> NDArray[np.int64]:
    found = np.zeros(len(offsets) - 1, np.int64)
    room = _longest(offsets)
    keys = np.empty(_slots(room), np.uint64)
    entries = np.empty(len(keys), np.int32)  # slot -> number of the n-gram, in the order they were first seen
    counts = np.empty(room + 1, np.int32)
    lengths = np.empty(room + 1, np.int32)
    for text in range(len(offsets) - 1):
        low, high = offsets[text], offsets[text + 1] - n + 1
        if high <= low or not wanted[text]:
            continue
        size = _slots(high - low)
        keys[:size] = 0
        mask = np.uint64(size - 1)
        seen = 0
        best = 0
        for at in range(low, high):
            key = np.uint64(0)
            for token in range(at, at + n):
                key = (key ^ hashes[token]) * _STEP
                key ^= key >> _FOLD
            key = key if key else np.uint64(1)
            slot = key & mask
            while keys[slot] and keys[slot] != key:
                slot = (slot + np.uint64(1)) & mask
            if not keys[slot]:
                keys[slot] = key
                entries[slot] = seen
                counts[seen] = 0
                lengths[seen] = n - 1
                for token in range(at, at + n):
                    lengths[seen] += chars[token]
                seen += 1
            counts[entries[slot]] += 1
            best = max(best, counts[entries[slot]])
        for entry in range(seen):
            if counts[entry] == best:
                found[text] = np.int64(best) * np.int64(lengths[entry])
                break
    return found


@jit
def _duplicates(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    chars: NDArray[np.int32],
    widths: NDArray[np.int32],
    sizes: NDArray[np.int64],
    wanted: NDArray[np.bool_],
) -> NDArray[np.int64]:
    found = np.zeros((len(offsets) - 1, len(sizes)), np.int64)
    room = _longest(offsets)
    keys = np.empty(_slots(room), np.uint64)
    sums = np.empty(room + 1, np.uint64)  # hash of the tokens before this one, written together
    shifts = np.empty(room + 1, np.uint64)  # what takes that many bytes off a hash's exponent
    lengths = np.empty(room + 1, np.int64)
    for text in range(len(offsets) - 1):
        low, count = offsets[text], offsets[text + 1] - offsets[text]
        if not wanted[text]:
            continue
        _sum_up(hashes[low : low + count], chars[low : low + count], widths[low : low + count], sums, shifts, lengths)
        for column in range(len(sizes)):
            n = sizes[column]
            if count > n:
                found[text, column] = _repeated(sums, shifts, lengths, count, n, keys)
    return found


@jit
def _sum_up(
    hashes: NDArray[np.uint64],
    chars: NDArray[np.int32],
    widths: NDArray[np.int32],
    sums: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    lengths: NDArray[np.int64],
) -> None:
    sums[0], shifts[0], lengths[0] = 0, 1, 0
    power = np.uint64(1)
    for token in range(len(hashes)):
        sums[token + 1] = sums[token] + hashes[token] * power
        lengths[token + 1] = lengths[token] + chars[token]
        shift = shifts[token]
        for _ in range(widths[token]):
            power *= _BASE
            shift *= _INVERSE
        shifts[token + 1] = shift


@jit
def _repeated(
    sums: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    lengths: NDArray[np.int64],
    count: int,
    n: int,
    keys: NDArray[np.uint64],
) -> int:
    size = _slots(count - n + 1)
    keys[:size] = 0
    mask = np.uint64(size - 1)
    repeated = 0
    at = 0
    while at <= count - n:
        key = _scramble((sums[at + n] - sums[at]) * shifts[at])
        slot = key & mask
        while keys[slot] and keys[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if keys[slot]:
            repeated += lengths[at + n] - lengths[at]
            at += n
        else:
            keys[slot] = key
            at += 1
    return repeated
