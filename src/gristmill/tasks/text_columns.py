"""Columns of texts: making them of Python strings, finding bytes in them, replacing some of their rows.

Everything works on Arrow's buffers, so that texts that do not change are neither decoded nor copied one by one. What a
text means is none of this module's business.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

# Where a byte, or a bit, is set in a buffer.

_SCAN_BYTES = 1 << 18  # compared at a time, so that the result of comparing stays in the cache


def find_byte(data: NDArray[np.uint8], byte: int) -> NDArray[np.int64]:
    """Return all positions of a byte, in order."""
    starts = range(0, len(data), _SCAN_BYTES)
    found = [np.flatnonzero(data[start : start + _SCAN_BYTES] == byte) + start for start in starts]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def unpack_bits(bitmap: pa.Buffer, offset: int, length: int) -> NDArray[np.bool_]:
    """Return Arrow's bits as bools; `Array.to_numpy` would import pandas for that."""
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=offset + length, bitorder="little")
    return bits[offset:].view(bool)


# Keep some rows of long strings, in memory of exactly the right size.
#
# Arrow's filter is as fast but grows its result by doubling: on a block of 32 MiB that adds 34 MB to the peak of a
# worker (docs/log/2026-11-15-jsonl.md). Here neighbours that stay are copied together.

_OFFSET_TYPE = {pa.large_binary(): np.int64, pa.large_string(): np.int64, pa.binary(): np.int32, pa.string(): np.int32}
_PIECE_BYTES = 1 << 20
_SHORT_BYTES = 64  # mean length below which copying row by row no longer pays


def filter_table(table: pa.Table, mask: pa.Array) -> pa.Table:
    """Return the rows where the mask is true."""
    columns = [filter_column(column, mask) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def filter_column(column: pa.ChunkedArray, mask: pa.Array) -> pa.ChunkedArray:
    """Return the values where the mask is true."""
    if column.type not in _OFFSET_TYPE or column.num_chunks != 1:
        return column.filter(mask)
    return pa.chunked_array([filter_array(column.chunk(0), mask)], column.type)


def filter_array(array: pa.Array, mask: pa.Array) -> pa.Array:
    """Return the values of one array where the mask is true."""
    if array.type not in _OFFSET_TYPE or array.null_count or not len(array) or mask.null_count:
        return array.filter(mask)
    width = np.dtype(_OFFSET_TYPE[array.type])
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
        if used + stop - start <= _PIECE_BYTES:  # nearly always
            piece[used : used + stop - start] = source[start:stop]
            used += stop - start
            continue
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


_OFFSETS: dict[pa.DataType, type[np.signedinteger]] = {pa.string(): np.int32, pa.large_string(): np.int64}
_MOST_BYTES = np.iinfo(np.int32).max  # of one array of type string


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds UTF-8 in the layout this module reads."""
    return kind in _OFFSETS


def from_texts(values: Sequence[str | None]) -> pa.Array:
    """Return what `pa.array` would, which imports pandas (0.2 s per worker) to see that this is not a Series.

    Raises UnicodeEncodeError for half of a surrogate pair, which UTF-8 cannot hold.
    """
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    kind = pa.string() if not len(ends) or ends[-1] <= _MOST_BYTES else pa.large_string()
    offsets = np.zeros(len(values) + 1, _OFFSETS[kind])
    offsets[1:] = ends
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    buffers = [to_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def to_bitmap(is_valid: NDArray[np.bool_]) -> pa.Buffer | None:
    """Return the bits that say which values are there; None stands for all."""
    return None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))


def bytes_and_offsets(column: pa.ChunkedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the texts of a column end to end, and where each begins and the last one ends; a null is an empty text."""
    parts = [_parts(chunk) for chunk in column.chunks if len(chunk)]
    if len(parts) == 1 and not column.null_count:
        return np.frombuffer(parts[0][1], np.uint8), parts[0][0]
    lengths = [np.diff(offsets) * _is_there(chunk) for chunk, (offsets, _) in zip(_filled(column), parts, strict=True)]
    pieces = [_without_nulls(chunk, *part) for chunk, part in zip(_filled(column), parts, strict=True)]
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(np.concatenate([*lengths, np.zeros(0, np.int64)]), out=offsets[1:])
    return np.concatenate([*pieces, np.zeros(0, np.uint8)]), offsets


def from_bytes_and_offsets(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], is_valid: NDArray[np.bool_]
) -> pa.Array:
    """Return an array of the texts that lie end to end in `data`, which must be UTF-8; null where not valid."""
    kind = pa.string() if offsets[-1] <= _MOST_BYTES else pa.large_string()
    places = pa.py_buffer(offsets.astype(_OFFSETS[kind]))
    return pa.Array.from_buffers(kind, len(is_valid), [to_bitmap(is_valid), places, pa.py_buffer(data)])


def _filled(column: pa.ChunkedArray) -> list[pa.Array]:
    return [chunk for chunk in column.chunks if len(chunk)]


def _is_there(array: pa.Array) -> NDArray[np.bool_]:
    if not array.null_count:
        return np.ones(len(array), np.bool_)
    return unpack_bits(array.buffers()[0], array.offset, len(array))


def _without_nulls(array: pa.Array, offsets: NDArray[np.int64], view: memoryview) -> NDArray[np.uint8]:
    """The bytes of the texts that are not null: what lies under a null is undefined, though usually nothing."""
    data = np.frombuffer(view, np.uint8)
    there = _is_there(array)
    hidden = np.diff(offsets) * ~there
    return data[np.repeat(there, np.diff(offsets))] if hidden.any() else data


def find_rows(column: pa.ChunkedArray, needle: bytes) -> NDArray[np.bool_]:
    """Return bool[N], true for the texts that hold the needle; three times as fast as Arrow's `match_substring`."""
    return np.concatenate([_find_rows(chunk, needle) for chunk in column.chunks] or [np.zeros(0, np.bool_)])


def _find_rows(array: pa.Array, needle: bytes) -> NDArray[np.bool_]:
    found = np.zeros(len(array), np.bool_)
    offsets, data = _parts(array)
    haystack = bytes(data)
    position = haystack.find(needle) if len(array) else -1
    while position >= 0:
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        end = int(offsets[row + 1])
        # A hit may cross the end of its text, where the needle's first bytes end one text and the rest begin the next.
        if position + len(needle) <= end:
            found[row] = True
            position = haystack.find(needle, end)
        else:
            position = haystack.find(needle, position + 1)
    return found


def replace_rows(column: pa.ChunkedArray, rows: NDArray[np.int64], texts: Sequence[str]) -> pa.ChunkedArray:
    """Return the column with new texts in some rows, which are given in rising order.

    Raises UnicodeEncodeError as `from_texts` does.
    """
    chunks, first, done = [], 0, 0
    for chunk in column.chunks:
        stop = int(np.searchsorted(rows, first + len(chunk)))
        chunks.append(_replace_rows(chunk, rows[done:stop] - first, texts[done:stop]) if stop > done else chunk)
        first, done = first + len(chunk), stop
    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    return pa.chunked_array(chunks, chunks[0].type if chunks else column.type)


def _replace_rows(array: pa.Array, rows: NDArray[np.int64], texts: Sequence[str]) -> pa.Array:
    offsets, data = _parts(array)
    encoded = [text.encode() for text in texts]
    lengths = np.diff(offsets)
    lengths[rows] = np.fromiter(map(len, encoded), np.int64, len(encoded))
    ends = np.cumsum(lengths)
    kind = array.type if ends[-1] <= _MOST_BYTES else pa.large_string()
    new_offsets = np.zeros(len(array) + 1, _OFFSETS[kind])
    new_offsets[1:] = ends
    pieces: list[bytes | memoryview] = []
    start = 0
    for row, text in zip(rows.tolist(), encoded, strict=True):
        pieces += [data[start : int(offsets[row])], text]
        start = int(offsets[row + 1])
    pieces.append(data[start : int(offsets[-1])])
    valid = np.ones(len(array), np.bool_)
    if array.null_count:
        valid = unpack_bits(array.buffers()[0], array.offset, len(array))
        valid[rows] = True
    buffers = [to_bitmap(valid), pa.py_buffer(new_offsets), pa.py_buffer(b"".join(pieces))]
    return pa.Array.from_buffers(kind, len(array), buffers)


def _parts(array: pa.Array) -> tuple[NDArray[np.int64], memoryview]:
    """Return where each text begins and the last one ends, counted from the first, and the bytes between."""
    width = np.dtype(_OFFSETS[array.type])
    _, buffer, data = array.buffers()
    if buffer is None or not buffer.size:
        return np.zeros(1, np.int64), memoryview(b"")
    offsets = np.frombuffer(buffer, width, len(array) + 1, array.offset * width.itemsize).astype(np.int64)
    view = memoryview(b"") if data is None else memoryview(data)[int(offsets[0]) : int(offsets[-1])]
    return offsets - offsets[0], view


def match_rows(column: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    """Return bool[N], true for the texts in which the pattern (RE2, linear in any text) occurs."""
    import pyarrow.compute as pc  # 30 ms, and most workers never match a pattern

    found = pc.match_substring_regex(column, pattern)
    return np.concatenate([_true_bits(chunk) for chunk in found.chunks] or [np.zeros(0, np.bool_)])


def _true_bits(array: pa.Array) -> NDArray[np.bool_]:
    """Return true where a value is true, and false where there is none: the bits there are undefined."""
    valid, bits = array.buffers()
    if bits is None:
        return np.zeros(len(array), np.bool_)
    true = unpack_bits(bits, array.offset, len(array))
    return true & unpack_bits(valid, array.offset, len(array)) if array.null_count else true
