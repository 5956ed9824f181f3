"""MinHash signatures, folded into one 64-bit key a band as they are made.

For shingle sets A and B a signature position agrees with probability |A ∩ B| / |A ∪ B|, so two texts share a band of r
positions with its r-th power. Position k is the least of h_k(x) = (a_k x + b_k) mod 2**32 over the shingles x, with odd
a_k: a family that is only good for keys that are well mixed already, which shingles are. One shingle at a time against
all positions, so that the compiler makes eight positions of one instruction.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.compiled import compiled
from gristmill.kernels.dedup.tokens import _hash128, longest, mix64, shingle, tokenize

EMPTY = np.uint32(0xFFFF_FFFF)


def draw_permutations(count: int, *, seed: int) -> NDArray[np.uint32]:
    """Return uint32[2, count]: a_k (odd) and b_k. Same seed, same numbers, on every worker."""
    drawn = np.random.default_rng(seed).integers(2**32, size=(2, count), dtype=np.uint64).astype(np.uint32)
    drawn[0] |= np.uint32(1)
    return drawn


@compiled
def _sign(shingles: NDArray[np.uint64], count: int, permutations: NDArray[np.uint32], out: NDArray[np.uint32]) -> None:
    a, b = permutations[0], permutations[1]
    out[:] = EMPTY
    for i in range(count):
        key = np.uint32(shingles[i] >> np.uint64(32))
        for k in range(len(out)):
            value = np.uint32(a[k] * key + b[k])
            out[k] = min(out[k], value)


@compiled
def signatures(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    fold: NDArray[np.uint32],
    by_word: bool,
    n: int,
    permutations: NDArray[np.uint32],
) -> NDArray[np.uint32]:
    """Return uint32[D, K]: the signature of each text, all `EMPTY` for one without shingles."""
    made = np.empty((len(offsets) - 1, permutations.shape[1]), np.uint32)
    tokens = np.empty(longest(offsets) + 1, np.uint64)
    shingles = np.empty(longest(offsets) + 1, np.uint64)
    for doc in range(len(offsets) - 1):
        count = tokenize(data, offsets[doc], offsets[doc + 1], fold, by_word, tokens)
        _sign(shingles, shingle(tokens, count, n, shingles), permutations, made[doc])
    return made


@compiled
def sketch(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    fold: NDArray[np.uint32],
    by_word: bool,
    n: int,
    permutations: NDArray[np.uint32],
    num_bands: int,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int32]]:
    """Return what fuzzy deduplication keeps of D texts.

    keys    uint64[num_bands, D]  two texts that agree in a band have the same key there
    hashes  uint64[D, 2]          128 bits of the tokens: equal for texts equal up to case, accents and punctuation
    sizes   int32[D]              how many shingles, repeats included; 0 for a text that has nothing to compare
    """
    num_docs = len(offsets) - 1
    keys = np.empty((num_bands, num_docs), np.uint64)
    hashes = np.zeros((num_docs, 2), np.uint64)
    sizes = np.empty(num_docs, np.int32)
    rows = permutations.shape[1] // num_bands
    tokens = np.empty(longest(offsets) + 1, np.uint64)
    shingles = np.empty(longest(offsets) + 1, np.uint64)
    signature = np.empty(num_bands * rows, np.uint32)
    for doc in range(num_docs):
        count = tokenize(data, offsets[doc], offsets[doc + 1], fold, by_word, tokens)
        _hash128(tokens, count, hashes[doc])
        size = shingle(tokens, count, n, shingles)
        sizes[doc] = size
        _sign(shingles, size, permutations, signature)
        for band in range(num_bands):
            key = np.uint64(band)
            for row in range(rows):
                key = mix64(key * np.uint64(0x9E3779B97F4A7C15) + np.uint64(signature[band * rows + row]))
            keys[band, doc] = key
    return keys, hashes, sizes
