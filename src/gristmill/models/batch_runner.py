"""Token ids through a runtime, batch by batch, with fewer rows wherever memory is short.

    limits = MemoryLimits(max_rows=256, max_tokens=default_batch_tokens(runtime.device))
    limits.begin_at(rows=learnt.get(LEARNT_ROWS), tokens=learnt.get(LEARNT_TOKENS))    # of worker_metadata.learnt
    for answer in run_batches(runtime, tokens.ids, tokens.offsets, limits):
        answer.rows, answer.mask, answer.outputs          # outputs is None: this one row does not fit alone

All rows of one call belong to one task: batches are never made of several tasks, so what shares a batch depends on the
task alone. Rows without a token are left out.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import OutOfMemory
from gristmill.kernels.token_batches import PaddingSide, order_by_length, pad_rows, rows_that_fit
from gristmill.models.memory_limits import MemoryLimits
from gristmill.models.runtime import ModelRuntime

# Names for `context.count`, and for `context.learn`, which keeps the smallest.
OOM_COUNT, LEARNT_ROWS, LEARNT_TOKENS = "oom", "batch_rows", "batch_tokens"


class BatchAnswer(NamedTuple):
    """What a model answered for one batch."""

    rows: NDArray[np.int64]  # places in the task
    mask: NDArray[np.int64]  # [rows, longest]
    outputs: tuple[NDArray[np.float32], ...] | None  # None: a single row for which there is no room


def run_batches(
    runtime: ModelRuntime,
    ids: NDArray[np.int32],
    offsets: NDArray[np.int64],
    limits: MemoryLimits,
    *,
    sort: bool = True,
    side: PaddingSide = "right",
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[BatchAnswer]:
    """Yield the answers for all rows, each row once. `limits` learns from what does not fit."""
    lengths = np.diff(offsets)
    order = order_by_length(lengths, sort=sort)
    ordered, done = lengths[order], 0
    while done < len(order):
        size = rows_that_fit(ordered[done:], max_rows=limits.rows, max_tokens=limits.tokens)
        rows = order[done : done + size]
        padded, mask = pad_rows(ids, offsets, rows, pad_id=runtime.pad_id, side=side)
        try:
            outputs = runtime.run(padded, mask)
        except OutOfMemory:
            if limits.failed(*padded.shape, now=clock()):
                continue
            yield BatchAnswer(rows, mask, None)
        else:
            limits.succeeded(*padded.shape, now=clock())
            yield BatchAnswer(rows, mask, outputs)
        done += size
