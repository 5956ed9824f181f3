"""Sets of shingles, and how similar two of them are: exactly, up to collisions of 32-bit hashes.

Among two texts of 400 different shingles one collides with a probability of 4e-5, and then moves the similarity by
1/800.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.compiled import compiled
from gristmill.kernels.dedup.tokens import longest, shingle, tokenize


@compiled
def shingle_sets(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], fold: NDArray[np.uint32], by_word: bool, n: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the sets of D texts end to end, each sorted and without repeats, and int64[D + 1] where they begin."""
    num_docs = len(offsets) - 1
    bounds = np.zeros(num_docs + 1, np.int64)
    tokens = np.empty(longest(offsets) + 1, np.uint64)
    shingles = np.empty(longest(offsets) + 1, np.uint64)
    values = np.empty(max(16, offsets[-1] - offsets[0] + num_docs), np.uint32)
    for doc in range(num_docs):
        count = tokenize(data, offsets[doc], offsets[doc + 1], fold, by_word, tokens)
        size = shingle(tokens, count, n, shingles)
        own = np.empty(size, np.uint32)
        for i in range(size):
            own[i] = np.uint32(shingles[i] >> np.uint64(32))
        own.sort()
        at = bounds[doc]
        for i in range(size):
            if i == 0 or own[i] != own[i - 1]:
                values[at] = own[i]
                at += 1
        bounds[doc + 1] = at
    return values[: bounds[num_docs]].copy(), bounds


@compiled
def common(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> int:
    """Return how many values two sorted sets have in common."""
    i = j = shared = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            shared += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return shared
