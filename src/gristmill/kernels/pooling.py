"""One vector for each text from the vectors of its tokens.

    hidden  [R, T, W]  vectors of T tokens in R rows, padding included
    mask    [R, T]     1 for tokens, 0 for padding, on whichever side
    returns [R, W]

A row without a token has the vector 0.
"""

import numpy as np
from numpy.typing import NDArray


def mean_pooling(hidden: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return Σ h·mask / Σ mask.

    Summed along the tokens one after another, so that padding, which adds zeros, changes no bit.
    """
    seen = mask.astype(np.float32)
    total = np.add.reduce(hidden * seen[:, :, None], axis=1, dtype=np.float64)
    mean = total / np.maximum(seen.sum(axis=1, dtype=np.float64), 1)[:, None]
    return np.asarray(mean, dtype=np.float32)


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
