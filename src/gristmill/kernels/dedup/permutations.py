"""The hash functions of MinHash: h_k(x) = (a_k x + b_k) mod 2**32, with odd a_k."""

import numpy as np
from numpy.typing import NDArray


def draw_permutations(count: int, *, seed: int) -> NDArray[np.uint32]:
    """Return uint32[2, count]: a_k (odd) and b_k. Same seed, same numbers, on every worker."""
    drawn = np.random.default_rng(seed).integers(2**32, size=(2, count), dtype=np.uint64).astype(np.uint32)
    drawn[0] |= np.uint32(1)
    return drawn
