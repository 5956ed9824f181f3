"""Keep some rows of long strings, in memory of exactly the right size.

Arrow's filter is as fast but grows its result by doubling: on a block of 32 MiB that adds 34 MB to the peak of a worker
(docs/log/2026-11-15-jsonl.md). Neighbours that stay are copied together here.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.tasks.byte_search import unpack_bits

_OFFSETS = {pa.large_binary(): np.int64, pa.large_string(): np.int64, pa.binary(): np.int32, pa.string(): np.int32}
_PIECE_BYTES = 1 << 20
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
    keep = _bits(mask)
    new_offsets = np.zeros(int(keep.sum()) + 1, width)
    np.cumsum(np.diff(offsets)[keep], out=new_offsets[1:])
    data = _copy_runs(array.buffers()[2], offsets, keep, int(new_offsets[-1]))
    return pa.Array.from_buffers(array.type, len(new_offsets) - 1, [None, pa.py_buffer(new_offsets), data])


def _copy_runs(source: pa.Buffer | None, offsets: NDArray[np.int64], keep: NDArray[np.bool_], size: int) -> pa.Buffer:
    target = pa.allocate_buffer(size)
    if source is None or not size:
        return target
    old, new, position = memoryview(source), memoryview(target), 0
    for start, stop in _runs(offsets, keep):
        new[position : position + stop - start] = old[start:stop]
        position += stop - start
    return target


def _runs(offsets: NDArray[np.int64], keep: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Where the bytes of neighbours that stay begin and end."""
    edges = np.flatnonzero(np.diff(keep, prepend=False, append=False))
    return zip(offsets[edges[::2]].tolist(), offsets[edges[1::2]].tolist(), strict=True)


def kept_bytes(lines: pa.Array, mask: pa.Array) -> int:
    """Return how many bytes the values of a large binary array have where the mask is true."""
    return int(np.diff(_offsets(lines))[_bits(mask)].sum())


def kept_pieces(lines: pa.Array, mask: pa.Array) -> Iterator[memoryview]:
    """Yield the bytes of a large binary array's values where the mask is true, end to end, in pieces of a megabyte.

    Only pieces are copied, so what is written needs no second block of memory, which would cost more than the copying.
    """
    source = memoryview(lines.buffers()[2] or b"")
    piece, used = memoryview(pa.allocate_buffer(_PIECE_BYTES)), 0
    for start, stop in _runs(_offsets(lines), _bits(mask)):
        for first in range(start, stop, _PIECE_BYTES):
            size = min(stop - first, _PIECE_BYTES)
            if used + size > _PIECE_BYTES:
                yield piece[:used]
                piece, used = memoryview(pa.allocate_buffer(_PIECE_BYTES)), 0
            piece[used : used + size] = source[first : first + size]
            used += size
    if used:
        yield piece[:used]


def _offsets(lines: pa.Array) -> NDArray[np.int64]:
    return np.frombuffer(lines.buffers()[1], np.int64, len(lines) + 1, lines.offset * 8)


def _bits(mask: pa.Array) -> NDArray[np.bool_]:
    return unpack_bits(mask.buffers()[1], mask.offset, len(mask))


def count_true(mask: pa.Array | pa.ChunkedArray) -> int:
    """Return how many values are true. Without pyarrow.compute, whose import costs every process 30 ms."""
    chunks = mask.chunks if isinstance(mask, pa.ChunkedArray) else [mask]
    return sum(chunk.true_count for chunk in chunks)
