"""Sets of shingles, and how much two of them have in common: exactly, up to collisions of 32-bit hashes.

Among two texts of 400 different shingles one collides with a probability of 4e-5, and then moves the similarity by
1/800.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import SIZE as FOLD_SIZE
from gristmill.kernels.dedup.tokens import shingle, tokenize
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, bytes_of_texts, longest_text, sized


@inline
def _sort_digit(
    source: NDArray[np.uint32], count: int, shift: int, places: NDArray[np.int64], target: NDArray[np.uint32]
) -> None:
    """Order values by 8 of their bits, keeping the order of those that agree there."""
    for i in range(257):
        places[i] = 0
    for i in range(count):
        places[((source[i] >> shift) & 255) + 1] += 1
    for i in range(1, 256):
        places[i] += places[i - 1]
    for i in range(count):
        digit = (source[i] >> shift) & 255
        target[places[digit]] = source[i]
        places[digit] += 1


@sized(
    **TEXTS,
    fold=lambda: FOLD_SIZE,
    tokens=longest_text,
    shingles=longest_text,
    own=longest_text,
    spare=longest_text,
    places=lambda: 257,
    values=bytes_of_texts,
    bounds=lambda documents: documents + 1,
)
def shingle_sets(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    fold: NDArray[np.uint32],
    by_word: int,
    n: int,
    tokens: NDArray[np.uint64],
    shingles: NDArray[np.uint64],
    own: NDArray[np.uint32],
    spare: NDArray[np.uint32],
    places: NDArray[np.int64],
    values: NDArray[np.uint32],
    bounds: NDArray[np.int64],
) -> None:
    """Write the sets of D texts end to end, each sorted and without repeats.

    tokens, shingles, own, spare   room for those of the longest text
    places                         [257]
    values                         room for the shingles of all texts
    bounds                         [D + 1]  where each set begins
    """
    bounds[0] = 0
    for d in range(documents):
        count = tokenize(data, starts[d], stops[d], fold, by_word, tokens)
        size = shingle(tokens, count, n, shingles)
        at = bounds[d]
        for i in range(size):
            own[i] = np.uint32(shingles[i] >> np.uint64(32))
        _sort_digit(own, size, 0, places, spare)
        _sort_digit(spare, size, 8, places, own)
        _sort_digit(own, size, 16, places, spare)
        _sort_digit(spare, size, 24, places, own)
        for i in range(size):
            if i == 0 or own[i] != own[i - 1]:
                values[at] = own[i]
                at += 1
        bounds[d + 1] = at


@inline
def common(values: NDArray[np.uint32], i: int, end: int, j: int, other_end: int) -> int:
    """Return how many values the sorted sets values[i:end] and values[j:other_end] have in common."""
    shared = 0
    while i < end and j < other_end:
        a, b = values[i], values[j]
        shared += a == b
        i += a <= b
        j += b <= a
    return shared
