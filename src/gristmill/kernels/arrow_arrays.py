"""Numpy arrays as Arrow arrays and back, without `pa.array` and `to_numpy`.

Both import pandas where it is installed, to recognise its types: 0.2 to 0.4 s in every worker that calls them
(measured 2026-11-15, pyarrow 26, pandas 3.1). An array made of buffers costs nothing and copies nothing.
"""

from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.number)

_TYPES: dict[np.dtype[np.number], pa.DataType] = {
    np.dtype(np.int32): pa.int32(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint32): pa.uint32(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float32): pa.float32(),
    np.dtype(np.float64): pa.float64(),
}

_KINDS = {made: kind for kind, made in _TYPES.items()}


def from_numbers(values: NDArray[np.number]) -> pa.Array:
    """Return a one-dimensional array of 32- or 64-bit numbers as an Arrow array without nulls, sharing its memory."""
    if values.dtype not in _TYPES or values.ndim != 1:
        raise ValueError(
            f"from_numbers: expected one dimension of {sorted(map(str, _TYPES))}; got {values.dtype}{values.shape}"
        )
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def numbers_of(array: pa.Array) -> NDArray[np.number]:
    """Return an Arrow array of numbers without nulls as a numpy array, sharing its memory."""
    kind = _KINDS.get(array.type)
    if kind is None or array.null_count:
        raise ValueError(f"numbers_of: expected numbers without nulls; got {array.null_count} nulls of {array.type}")
    data = array.buffers()[1]
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)


def to_numbers(column: pa.ChunkedArray, kind: type[Number]) -> NDArray[Number]:
    """Return a column of numbers without nulls as this type, copied only if it has several chunks or another type."""
    chunks = [numbers_of(chunk) for chunk in column.chunks]
    joined = chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, kind), *chunks])
    return joined.astype(kind, copy=False)


def from_lists(values: NDArray[np.number], bounds: NDArray[np.int64]) -> pa.Array:
    """Return lists of numbers: row i is values[bounds[i]:bounds[i + 1]]."""
    kind = pa.large_list(_TYPES[values.dtype])
    return pa.Array.from_buffers(
        kind, len(bounds) - 1, [None, pa.py_buffer(np.ascontiguousarray(bounds))], children=[from_numbers(values)]
    )


def from_matrix(rows: NDArray[np.floating], is_valid: NDArray[np.bool_]) -> pa.Array:
    """Return lists of equal length, one per value of `is_valid`: the next row of [M, dim] where true, else null."""
    num_valid, length = rows.shape
    if num_valid != is_valid.sum():
        raise ValueError(f"from_matrix: expected {is_valid.sum()} rows; got {num_valid}")
    kind = pa.list_(pa.from_numpy_dtype(rows.dtype), length)
    if num_valid == len(is_valid):
        filled, bitmap = rows, None
    else:
        filled = np.zeros((len(is_valid), length), rows.dtype)  # a null has numbers too, which are never read
        filled[is_valid] = rows
        bitmap = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    numbers = pa.py_buffer(np.ascontiguousarray(filled).reshape(-1))
    values = pa.Array.from_buffers(kind.value_type, filled.size, [None, numbers])
    return pa.Array.from_buffers(kind, len(is_valid), [bitmap], children=[values])


def from_bools(values: NDArray[np.bool_]) -> pa.Array:
    """Return bool[N] as an Arrow array without nulls: one bit per value, lowest bit first."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def is_null(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return bool[N], true where the column is null."""
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return np.concatenate([_nulls_of(chunk) for chunk in column.chunks])


def _nulls_of(chunk: pa.Array) -> NDArray[np.bool_]:
    validity = chunk.buffers()[0]
    if chunk.type == pa.null():
        return np.ones(len(chunk), np.bool_)
    if validity is None:
        return np.zeros(len(chunk), np.bool_)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
    nulls: NDArray[np.bool_] = bits[chunk.offset : chunk.offset + len(chunk)] == 0
    return nulls
