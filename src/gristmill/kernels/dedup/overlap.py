"""Which texts hold an n-gram of a given set: the first one in each, and how many there are."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.compiled import compiled
from gristmill.kernels.dedup.tokens import longest, shingle, tokenize


@compiled
def ngram_hashes(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], fold: NDArray[np.uint32], n: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of every n folded words of D texts, end to end, and int64[D + 1] where they begin.

    A text of fewer than n words has none.
    """
    num_docs = len(offsets) - 1
    bounds = np.zeros(num_docs + 1, np.int64)
    tokens = np.empty(longest(offsets) + 1, np.uint64)
    own = np.empty(longest(offsets) + 1, np.uint64)
    values = np.empty(max(1, offsets[-1] - offsets[0]), np.uint64)
    for doc in range(num_docs):
        count = tokenize(data, offsets[doc], offsets[doc + 1], fold, True, tokens)
        size = shingle(tokens, count, n, own) if count >= n else 0
        values[bounds[doc] : bounds[doc] + size] = own[:size]
        bounds[doc + 1] = bounds[doc] + size
    return values[: bounds[num_docs]].copy(), bounds


@compiled
def overlaps(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    fold: NDArray[np.uint32],
    n: int,
    known: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compare texts with `known`, which is sorted.

    returns  first [D]  the position in `known` of the first n-gram met, or -1
             hits  [D]  how many of the text's n-grams are known
    """
    num_docs = len(offsets) - 1
    first = np.full(num_docs, -1, np.int64)
    hits = np.zeros(num_docs, np.int64)
    tokens = np.empty(longest(offsets) + 1, np.uint64)
    own = np.empty(longest(offsets) + 1, np.uint64)
    for doc in range(num_docs):
        count = tokenize(data, offsets[doc], offsets[doc + 1], fold, True, tokens)
        size = shingle(tokens, count, n, own) if count >= n else 0
        for i in range(size):
            place = np.searchsorted(known, own[i])
            if place < len(known) and known[place] == own[i]:
                hits[doc] += 1
                if first[doc] < 0:
                    first[doc] = place
    return first, hits
