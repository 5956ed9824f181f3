"""`fit_linear`: logistic regression on vectors, with an L2 penalty. Plain numpy, a block of rows at a time.

Minimises  Σ log(1 + exp(−s·z)) + l2/2 · ‖w‖²  with z = w·(x − mean)/deviation + b and s = ±1, by Newton's method: the
loss is convex and has one minimum, so where it starts and how rows are spread over blocks does not matter beyond
rounding. Weights are rounded to float32, which removes even that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

BLOCK = 4096  # rows at a time: with 384 dimensions, 25 MB
MOST_STEPS = 100
HALVINGS = 30
CLOSE = 1e-10  # a step shorter than this, compared with the weights, changes nothing a float32 shows


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Log odds are weights·x + bias."""

    weights: NDArray[np.float32]
    bias: float

    def log_odds(self, vectors: Vectors) -> Floats:
        """Return float64[N]. Not as a product of matrices: a row's sum must not depend on its neighbours."""
        products = vectors.astype(np.float64) * self.weights.astype(np.float64)
        log_odds: Floats = products.sum(axis=1) + self.bias
        return log_odds


def fit_linear(vectors: Vectors, positive: Flags, *, l2: float = 1.0) -> LinearHead:
    """Fit to float32[N, dim], which may be mapped from a file: it is read a few times, a block at a time."""
    if len(vectors) != len(positive) or positive.all() or not positive.any():
        raise ConfigError(
            f"fit_linear: expected a class for each of {len(vectors)} vectors and both classes among them; "
            f"got {int(positive.sum())} positive of {len(positive)}"
        )
    mean, deviation = _moments(vectors)
    scaled = _Scaled(vectors, positive, mean, deviation, l2)
    weights = np.zeros(vectors.shape[1] + 1)  # the last one is the bias
    loss, gradient, curvature = scaled.derivatives(weights)
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(curvature, gradient).astype(np.float64)
        weights, loss, gradient, curvature = _stepped(scaled, weights, step, loss)
        if np.abs(step).max() <= CLOSE * max(1.0, np.abs(weights).max()):
            break
    unscaled = (weights[:-1] / deviation).astype(np.float32)
    return LinearHead(unscaled, float(np.float32(weights[-1] - (mean / deviation * weights[:-1]).sum())))


def _stepped(scaled: "_Scaled", weights: Floats, step: Floats, loss: float) -> tuple[Floats, float, Floats, Floats]:
    """Go a step, or half of it, or a quarter: as far as the loss does not rise."""
    for halving in range(HALVINGS):
        tried = weights - step / 2**halving
        found = scaled.derivatives(tried)
        if found[0] <= loss * (1 + 1e-12):
            return tried, *found
    return weights, *scaled.derivatives(weights)


def _moments(vectors: Vectors) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each dimension; the deviation is 1 where all rows are the same."""
    total = np.zeros(vectors.shape[1])
    for block in _blocks(len(vectors)):
        total += vectors[block].astype(np.float64).sum(axis=0)
    mean = total / len(vectors)
    squares = np.zeros(vectors.shape[1])
    for block in _blocks(len(vectors)):
        squares += ((vectors[block] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / len(vectors))
    return mean, np.where(deviation > 1e-12, deviation, 1.0)


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(first, min(first + BLOCK, rows)) for first in range(0, rows, BLOCK))


@dataclass(frozen=True, eq=False)
class _Scaled:
    """The loss on vectors brought to mean 0 and deviation 1, with a column of ones after them."""

    vectors: Vectors
    positive: Flags
    mean: Floats
    deviation: Floats
    l2: float

    def derivatives(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss, its gradient and its second derivatives."""
        penalty = np.append(np.full(len(weights) - 1, self.l2), 1e-9)  # the bias is free, but may not run away
        loss, gradient, curvature = float((penalty * weights**2).sum() / 2), penalty * weights, np.diag(penalty)
        for block in _blocks(len(self.vectors)):
            rows = (self.vectors[block] - self.mean) / self.deviation
            rows = np.column_stack([rows, np.ones(len(rows))])
            signed = np.where(self.positive[block], -1.0, 1.0) * (rows @ weights)
            loss += float(np.logaddexp(0, signed).sum())
            wrong = 1 / (1 + np.exp(-np.clip(signed, -700, 700)))  # how much of each document is on the wrong side
            gradient += rows.T @ np.where(self.positive[block], -wrong, wrong)
            curvature += rows.T @ (rows * (wrong * (1 - wrong))[:, None])
        return loss, gradient, curvature
