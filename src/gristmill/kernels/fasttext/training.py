"""One pass of stochastic gradient descent over documents given as rows of a matrix. Compiled by numba.

A document's rows are averaged; the two classes' rows of the output matrix, times that average, are the log odds. Each
document moves both matrices a little, before the next one is looked at: the order is part of the result. The step
shrinks evenly to nothing over all passes.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import end_of_texts, sized

STEP, DONE, TOTAL = 0, 1, 2  # of `settings`: the first step; rows seen so far; rows of all passes
SETTINGS = 3

_LOG2_E = 1.4426950408889634
_LN2 = 0.6931471805599453
_STEEPEST = 30.0  # beyond these log odds the probability is 0 or 1 to the last bit of a float32
_TERMS = 13  # of the series below: the next is too small to change a double


@inline
def sigmoid(x: float) -> float:
    """1 / (1 + e^−x) from additions, multiplications and one division: machines' libraries differ in the last bit."""
    x = min(max(x, -_STEEPEST), _STEEPEST)
    twos = int(np.floor(-x * _LOG2_E + 0.5))
    rest = -x - twos * _LN2
    power = 1.0
    for term in range(_TERMS, 0, -1):
        power = 1.0 + power * rest / term
    while twos > 0:
        power *= 2.0
        twos -= 1
    while twos < 0:
        power *= 0.5
        twos += 1
    return 1.0 / (1.0 + power)


@sized(
    starts=lambda documents: documents,
    stops=lambda documents: documents,
    ids=end_of_texts,  # of rows here, not of bytes
    positive=lambda documents: documents,
    order=lambda last: last,
    inputs=lambda rows, dim: rows * dim,
    outputs=lambda dim: 2 * dim,
    hidden=lambda dim: dim,
    gradient=lambda dim: dim,
    settings=lambda: SETTINGS,
)
def train(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    positive: NDArray[np.uint8],
    documents: int,
    order: NDArray[np.int64],
    first: int,
    last: int,
    inputs: NDArray[np.float32],
    rows: int,
    outputs: NDArray[np.float32],
    dim: int,
    hidden: NDArray[np.float32],
    gradient: NDArray[np.float32],
    settings: NDArray[np.float64],
) -> None:
    """Learn from the documents order[first:last].

    ids               rows of all documents; document d has ids[starts[d]:stops[d]], one at least
    positive          [D]  1 or 0
    inputs            [rows, dim]
    outputs           [2, dim]  the negative class, then the positive one
    hidden, gradient  [dim]
    settings          see above; the rows seen are counted up
    """
    for at in range(first, last):
        d = order[at]
        count = stops[d] - starts[d]
        step = settings[STEP] * max(0.0, 1.0 - settings[DONE] / settings[TOTAL])
        settings[DONE] += count
        for k in range(dim):
            hidden[k] = 0
        for i in range(starts[d], stops[d]):
            row = np.int64(ids[i]) * dim
            for k in range(dim):
                hidden[k] += inputs[row + k]
        odds = 0.0
        for k in range(dim):
            hidden[k] /= np.float32(count)
            odds += np.float64(hidden[k]) * (np.float64(outputs[dim + k]) - np.float64(outputs[k]))
        # What moves the positive row moves the negative one by as much the other way.
        move = np.float32(step * (positive[d] - sigmoid(odds)))
        for k in range(dim):
            gradient[k] = move * (outputs[dim + k] - outputs[k]) / np.float32(count)
            outputs[dim + k] += move * hidden[k]
            outputs[k] -= move * hidden[k]
        for i in range(starts[d], stops[d]):
            row = np.int64(ids[i]) * dim
            for k in range(dim):
                inputs[row + k] += gradient[k]
