"""Python values to Arrow's, made of buffers: `pa.scalar` and `pa.array` would import pandas where it is installed.

That is 0.3 s before the first page, and 30 MB of the 150 that looking at a dataset may take.
"""

import datetime
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools, from_numbers, numbers_of
from gristmill.tasks.text_columns import from_texts, to_bitmap, unpack_bits

MICROSECONDS = pa.timestamp("us")
_EPOCH = datetime.datetime(1970, 1, 1)  # as Arrow's timestamps without a zone
_MICROSECOND = datetime.timedelta(microseconds=1)


def scalar(value: object) -> pa.Scalar:
    """A value as an Arrow scalar: a number of 64 bits, a text, a flag, a moment, or null."""
    if value is None:
        return pa.nulls(1)[0]
    if isinstance(value, bool):
        return from_bools(np.array([value]))[0]
    if isinstance(value, datetime.datetime):
        number = np.array([(value - _EPOCH) // _MICROSECOND], np.int64)
        return pa.Array.from_buffers(MICROSECONDS, 1, [None, pa.py_buffer(number)])[0]
    if isinstance(value, int | float):
        return from_numbers(np.array([value], np.int64 if isinstance(value, int) else np.float64))[0]
    return from_texts([str(value)])[0]


def texts(values: Sequence[str | None]) -> pa.Array:
    """Texts; half of a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    try:
        return from_texts(values).cast(pa.large_string())
    except UnicodeEncodeError:
        mended = [value if value is None else value.encode("utf-8", "replace").decode() for value in values]
        return from_texts(mended).cast(pa.large_string())


def numbers(values: Sequence[float | None]) -> pa.Array:
    """Numbers: whole if all are and have 64 bits at most, floating otherwise; null where there is none."""
    there = _there(values)
    filled = [0 if value is None else value for value in values]
    try:
        kind = np.int64 if all(isinstance(value, int) for value in filled) else np.float64
        made = np.array(filled, kind)
    except OverflowError:
        made = np.array([_float(value) for value in filled], np.float64)
    made_type = pa.int64() if made.dtype == np.int64 else pa.float64()
    return pa.Array.from_buffers(made_type, len(made), [to_bitmap(there), pa.py_buffer(made)])


def flags(values: Sequence[bool | None]) -> pa.Array:
    """True, false, or null."""
    bits = np.packbits(np.array([value is True for value in values], np.bool_), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [to_bitmap(_there(values)), pa.py_buffer(bits)])


def lists(values: Sequence[Sequence[str | None] | None]) -> pa.Array:
    """Lists of texts, or null."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value or ()) for value in values], out=offsets[1:])
    inner = texts([item for value in values for item in value or ()])
    kind = pa.large_list(pa.large_string())
    return pa.Array.from_buffers(
        kind, len(values), [to_bitmap(_there(values)), pa.py_buffer(offsets)], children=[inner]
    )


def is_true(column: pa.ChunkedArray | pa.Array) -> NDArray[np.bool_]:
    """Where a column of flags is true; null is not."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([np.zeros(0, np.bool_), *map(_is_true, chunks)])


def rows_of(indices: pa.Array) -> NDArray[np.int64]:
    """Row numbers in an Arrow array as a numpy array."""
    return numbers_of(indices.cast(pa.int64())).astype(np.int64)


def _is_true(chunk: pa.Array) -> NDArray[np.bool_]:
    validity, bits = chunk.buffers()
    if not len(chunk):
        return np.zeros(0, np.bool_)
    found = unpack_bits(bits, chunk.offset, len(chunk))
    return found if validity is None else found & unpack_bits(validity, chunk.offset, len(chunk))


def _there(values: Sequence[object]) -> NDArray[np.bool_]:
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 300 digits
        return float("inf") if value > 0 else float("-inf")
