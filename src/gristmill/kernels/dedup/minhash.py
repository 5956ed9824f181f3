"""MinHash signatures, folded into one 64-bit key per band as they are made.

For shingle sets A and B a signature position agrees with probability |A ∩ B| / |A ∪ B|, so two texts share a band of r
positions with its r-th power. Position k is the least of h_k(x) over the shingles x: see `permutations`. The family is
only good for keys that are well mixed already, which shingles are. Shingles are taken one at a time against all
positions, so that the compiler can handle eight positions in one instruction.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import SIZE as FOLD_SIZE
from gristmill.kernels.dedup.tokens import hash128, mix64, shingle, tokenize
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, longest_text, sized

EMPTY = np.uint32(0xFFFF_FFFF)  # every position of a text without shingles
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@inline
def _sign(
    shingles: NDArray[np.uint64], count: int, permutations: NDArray[np.uint32], positions: int, out: NDArray[np.uint32]
) -> None:
    for k in range(positions):
        out[k] = EMPTY
    for i in range(count):
        key = np.uint32(shingles[i] >> np.uint64(32))
        for k in range(positions):
            value = np.uint32(permutations[k] * key + permutations[positions + k])
            out[k] = min(out[k], value)


@sized(
    **TEXTS,
    fold=lambda: FOLD_SIZE,
    permutations=lambda num_bands, rows: 2 * num_bands * rows,
    tokens=longest_text,
    shingles=longest_text,
    signature=lambda num_bands, rows: num_bands * rows,
    keys=lambda num_bands, documents: num_bands * documents,
    hashes=lambda documents: 2 * documents,
    sizes=lambda documents: documents,
)
def sketch(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    fold: NDArray[np.uint32],
    by_word: int,
    n: int,
    permutations: NDArray[np.uint32],
    num_bands: int,
    rows: int,
    tokens: NDArray[np.uint64],
    shingles: NDArray[np.uint64],
    signature: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    sizes: NDArray[np.int32],
) -> None:
    """Write what fuzzy deduplication keeps of D texts.

    permutations      [2, num_bands * rows]
    tokens, shingles  room for those of the longest text
    signature         [num_bands * rows]
    keys              [num_bands, D]      two texts that agree in a band have the same key there
    hashes            [D, 2]              128 bits of the tokens: equal for texts equal up to case, accents, punctuation
    sizes             [D]                 how many shingles, repeats included; 0 for a text with nothing to compare
    """
    for d in range(documents):
        count = tokenize(data, starts[d], stops[d], fold, by_word, tokens)
        hash128(tokens, count, hashes, 2 * d)
        size = shingle(tokens, count, n, shingles)
        sizes[d] = size
        _sign(shingles, size, permutations, num_bands * rows, signature)
        for band in range(num_bands):
            key = np.uint64(band)
            for row in range(rows):
                key = mix64(key * _FACTOR + np.uint64(signature[band * rows + row]))
            keys[band * documents + d] = key
