"""One vector for each text from the vectors of its tokens.

    hidden  [R, T, W]  vectors of T tokens in R rows, padding included
    mask    [R, T]     1 for tokens, 0 for padding, on whichever side
    returns [R, W]

A row without a token has the vector 0.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


def pool(hidden: NDArray[np.float32], mask: NDArray[np.int64], ways: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors that some of `WAYS` make, end to end: [R, W times the number of ways]."""
    made = [WAYS[way](hidden, mask) for way in ways]
    return made[0] if len(made) == 1 else np.concatenate(made, axis=1)


def mean_pooling(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return Σ h·mask / Σ mask.

    Summed along the tokens one after another, so that padding, which adds zeros, changes no bit.
    """
    return _weighted(hidden, mask, mask.astype(np.float64), power=1.0)


def mean_by_root(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return Σ h·mask / √Σ mask."""
    return _weighted(hidden, mask, mask.astype(np.float64), power=0.5)


def weighted_mean(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the mean in which the n-th token, padding not counted, has the weight n."""
    return _weighted(hidden, mask, (mask.cumsum(axis=1) * mask).astype(np.float64), power=1.0)


def max_pooling(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the largest value of each dimension."""
    seen = np.where(mask[:, :, None] != 0, hidden, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(mask.max(axis=1, initial=0)[:, None] > 0, seen, 0).astype(np.float32)


def _weighted(
    hidden: NDArray[np.float32], mask: NDArray[np.int64], weights: NDArray[np.float64], *, power: float
) -> NDArray[np.float32]:
    # Not hidden times 0: where there is padding, a model may return NaN.
    seen = hidden if mask.all() else np.where(mask[:, :, None] != 0, hidden, 0)
    total = np.add.reduce(seen * weights.astype(np.float32)[:, :, None], axis=1, dtype=np.float64)
    counted = np.maximum(weights.sum(axis=1), 1) ** power
    return np.asarray(total / counted[:, None], dtype=np.float32)


def first_token(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the vector of the first token that is not padding: [CLS], in models that have it."""
    return _picked(hidden, mask, mask.argmax(axis=1))


def last_token(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the vector of the last token that is not padding: not the last column, which padding may be in."""
    return _picked(hidden, mask, mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1))


def _picked(hidden: NDArray[np.float32], mask: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.float32]:
    picked = hidden[np.arange(len(hidden)), places].astype(np.float32)
    picked[mask.sum(axis=1) == 0] = 0
    return picked


def normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of length 1; the vector 0 stays."""
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=-1, keepdims=True))
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


# As the files of sentence-transformers call them.
WAYS: dict[str, Callable[[NDArray[np.float32], NDArray[np.int64]], NDArray[np.float32]]] = {
    "cls": first_token,
    "max": max_pooling,
    "mean": mean_pooling,
    "mean_sqrt_len_tokens": mean_by_root,
    "weightedmean": weighted_mean,
    "lasttoken": last_token,
}
