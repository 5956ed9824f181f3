"""Which texts hold an n-gram of a given set: the first one in each, and how many there are."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import SIZE as FOLD_SIZE
from gristmill.kernels.dedup.tokens import shingle, tokenize
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, bytes_of_texts, longest_text, sized


@inline
def _position(known: NDArray[np.uint64], num_known: int, wanted: np.uint64) -> int:
    """Return where a value is in a sorted array, or -1."""
    low, high = 0, num_known
    while low < high:
        middle = (low + high) >> 1
        if known[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < num_known and known[low] == wanted else -1


@sized(
    **TEXTS,
    fold=lambda: FOLD_SIZE,
    tokens=longest_text,
    own=longest_text,
    values=bytes_of_texts,
    bounds=lambda documents: documents + 1,
)
def ngram_hashes(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    fold: NDArray[np.uint32],
    n: int,
    tokens: NDArray[np.uint64],
    own: NDArray[np.uint64],
    values: NDArray[np.uint64],
    bounds: NDArray[np.int64],
) -> None:
    """Write the hashes of every n folded words of D texts, end to end. A text of fewer than n words has none.

    tokens, own  room for those of the longest text
    values       room for those of all texts
    bounds       [D + 1]  where those of each text begin
    """
    bounds[0] = 0
    for d in range(documents):
        count = tokenize(data, starts[d], stops[d], fold, 1, tokens)
        size = shingle(tokens, count, n, own) if count >= n else 0
        for i in range(size):
            values[bounds[d] + i] = own[i]
        bounds[d + 1] = bounds[d] + size


@sized(
    **TEXTS,
    fold=lambda: FOLD_SIZE,
    tokens=longest_text,
    own=longest_text,
    known=lambda num_known: num_known,
    first=lambda documents: documents,
    hits=lambda documents: documents,
)
def overlaps(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    fold: NDArray[np.uint32],
    n: int,
    tokens: NDArray[np.uint64],
    own: NDArray[np.uint64],
    known: NDArray[np.uint64],
    num_known: int,
    first: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> None:
    """Compare texts with `known`, which is sorted.

    tokens, own  room for those of the longest text
    first        [D]  the position in `known` of the first n-gram met, or -1
    hits         [D]  how many of the text's n-grams are known
    """
    for d in range(documents):
        count = tokenize(data, starts[d], stops[d], fold, 1, tokens)
        size = shingle(tokens, count, n, own) if count >= n else 0
        first[d], hits[d] = -1, 0
        for i in range(size):
            place = _position(known, num_known, own[i])
            if place >= 0:
                hits[d] += 1
                if first[d] < 0:
                    first[d] = place
