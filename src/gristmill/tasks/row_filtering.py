"""Keep some rows of long strings, in memory of exactly the right size.

Arrow's filter is as fast but grows its result by doubling: on a block of 32 MiB that adds 34 MB to the peak of a worker
(docs/log/2026-11-15-jsonl.md). Neighbours that stay are copied together here.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.tasks.byte_search import unpack_bits

_OFFSETS = {pa.large_binary(): np.int64, pa.large_string(): np.int64, pa.binary(): np.int32, pa.string(): np.int32}
_SHORT_BYTES = 64  # mean length below which copying row by row no longer pays


def filter_table(table: pa.Table, mask: pa.Array) -> pa.Table:
    """Return the rows where the mask is true."""
    columns = [filter_column(column, mask) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def filter_column(column: pa.ChunkedArray, mask: pa.Array) -> pa.ChunkedArray:
    """Return the values where the mask is true."""
    if column.type not in _OFFSETS or column.num_chunks != 1:
        return column.filter(mask)
    return pa.chunked_array([filter_array(column.chunk(0), mask)], column.type)


def filter_array(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values of one array where the mask is true."""
    if array.type not in _OFFSETS or array.null_count or not len(array) or mask.null_count:
        return array.filter(mask)
    width = np.dtype(_OFFSETS[array.type])
    offsets = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize)
    if offsets[-1] - offsets[0] < _SHORT_BYTES * len(array):
        return array.filter(mask)
    keep = unpack_bits(mask.buffers()[1], mask.offset, len(mask))
    new_offsets = np.zeros(int(keep.sum()) + 1, width)
    np.cumsum(np.diff(offsets)[keep], out=new_offsets[1:])
    data = _copy_runs(array.buffers()[2], offsets, keep, int(new_offsets[-1]))
    return pa.Array.from_buffers(array.type, len(new_offsets) - 1, [None, pa.py_buffer(new_offsets), data])


def _copy_runs(source: pa.Buffer | None, offsets: NDArray[np.int64], keep: NDArray[np.bool_], size: int) -> pa.Buffer:
    target = pa.allocate_buffer(size)
    if source is None or not size:
        return target
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
    old, new, position = memoryview(source), memoryview(target), 0
    for start, stop in zip(offsets[edges[::2]].tolist(), offsets[edges[1::2]].tolist(), strict=True):
        new[position : position + stop - start] = old[start:stop]
        position += stop - start
    return target


def count_true(mask: pa.Array | pa.ChunkedArray) -> int:
    """Return how many values are true. Without pyarrow.compute, whose import costs every process 30 ms."""
    chunks = mask.chunks if isinstance(mask, pa.ChunkedArray) else [mask]
    return sum(chunk.true_count for chunk in chunks)
