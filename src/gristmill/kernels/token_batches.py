"""Token ids of many documents, end to end, and the batches of them that a model is given.

    tokens   [T]      ids of all documents, end to end, without padding
    offsets  [D + 1]  document d owns tokens[offsets[d]:offsets[d + 1]]

What a batch costs is its rows times its longest row, padding included. So rows of similar length go together, and a
batch ends before it exceeds a number of rows or of padded tokens. Which documents share a batch depends on their
lengths and order alone: the same task is cut the same way wherever and whenever it is processed.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

PaddingSide = Literal["right", "left"]


def order_by_length(lengths: NDArray[np.int64], *, sort: bool = True) -> NDArray[np.int64]:
    """Return the numbers of the rows that have a token, the shortest first and equal ones in order.

    With `sort=False` they keep their order.
    """
    rows = np.flatnonzero(lengths > 0)
    return rows[np.argsort(lengths[rows], kind="stable")] if sort else rows


def rows_that_fit(lengths: NDArray[np.int64], *, max_rows: int, max_tokens: int) -> int:
    """Return how many of these rows, from the first on, one batch takes: at least one if there is any.

    A single row is a batch even if it exceeds the number of tokens: it cannot be divided.
    """
    if max_rows < 1 or max_tokens < 1:
        raise ValueError(f"max_rows and max_tokens must be ≥ 1; got {max_rows} and {max_tokens}")
    some = lengths[:max_rows]
    padded = np.maximum.accumulate(some) * np.arange(1, len(some) + 1)  # never falls, so the first excess ends it
    return max(int(np.searchsorted(padded, max_tokens, side="right")), min(len(some), 1))


def batches_of(
    lengths: NDArray[np.int64], *, max_rows: int, max_tokens: int, sort: bool = True
) -> list[NDArray[np.int64]]:
    """Return the rows of each batch. A row without a token is in none."""
    order = order_by_length(lengths, sort=sort)
    ordered, done = lengths[order], 0
    batches = []
    while done < len(order):
        size = rows_that_fit(ordered[done:], max_rows=max_rows, max_tokens=max_tokens)
        batches.append(order[done : done + size])
        done += size
    return batches


def pad_rows(
    tokens: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    *,
    pad_id: int,
    side: PaddingSide = "right",
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ids and mask [rows, longest] of some documents, as a model takes them: padding has mask 0."""
    lengths = offsets[rows + 1] - offsets[rows]
    longest = int(lengths.max(initial=0))
    column = np.arange(longest)
    first = np.zeros(len(rows), dtype=np.int64) if side == "right" else longest - lengths
    held = (column >= first[:, None]) & (column < (first + lengths)[:, None])
    ids = np.full((len(rows), longest), pad_id, dtype=np.int64)
    # Row by row, left to right, is the order in which both sides of the assignment are walked.
    source = np.repeat(offsets[rows] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    ids[held] = tokens[source + np.arange(len(source))] if len(source) else 0
    return ids, held.astype(np.int64)
