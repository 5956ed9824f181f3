"""64-bit hashes of rows of any columns: equal rows have equal hashes, in every process and on every machine.

An integer and a double of the same value hash alike, because the type of a JSON column is inferred for each batch. Used
to spread rows over partitions; not for deciding that two long texts are equal, which takes 128 bits (`content_hash`).
"""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import is_null

NULL = np.uint64(0x9E3779B97F4A7C15)  # what a null hashes to
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which all bits depend on all."""
    values = (values ^ (values >> _SHIFTS[0])) * _FACTORS[0]
    values = (values ^ (values >> _SHIFTS[1])) * _FACTORS[1]
    return values ^ (values >> _SHIFTS[2])


def hash_rows(columns: Sequence[pa.ChunkedArray], *, seed: int = 0) -> NDArray[np.uint64]:
    """Return uint64[N], one hash for each row of these columns, which have the same length N."""
    hashes = np.full(len(columns[0]), np.uint64(seed % 2**64))
    for column in columns:
        own = hash_column(column)
        hashes = mix(hashes * _FACTORS[0] + own)
    return hashes


def hash_column(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return uint64[N], one hash for each value."""
    if not len(column):
        return np.empty(0, np.uint64)
    hashes = np.concatenate([_hash_chunk(chunk) for chunk in column.chunks])
    hashes[is_null(column)] = NULL
    return hashes


def _hash_chunk(chunk: pa.Array) -> NDArray[np.uint64]:
    kind = chunk.type
    if isinstance(chunk, pa.DictionaryArray):
        return _hash_chunk(chunk.dictionary_decode())
    if pa.types.is_boolean(kind):
        chunk, kind = chunk.cast(pa.int8()), pa.int8()
    if pa.types.is_integer(kind):
        return mix(_numbers(chunk.cast(pa.int64(), safe=False)).view(np.uint64))
    if pa.types.is_floating(kind):
        return _hash_doubles(_numbers(chunk.cast(pa.float64())).view(np.float64))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return hash_bytes(chunk, np.dtype(np.int32))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return hash_bytes(chunk, np.dtype(np.int64))
    texts = (msgspec.json.encode(value, enc_hook=str) for value in chunk.to_pylist())
    return np.fromiter((xxhash.xxh3_64_intdigest(text) for text in texts), np.uint64, len(chunk))


def hash_bytes(chunk: pa.Array, offset_type: np.dtype[np.int32] | np.dtype[np.int64]) -> NDArray[np.uint64]:
    """Return uint64[N], XXH3 of each string's bytes."""
    _, offsets, data = chunk.buffers()
    if not len(chunk):
        return np.empty(0, np.uint64)
    bounds = np.frombuffer(offsets, offset_type)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
    view = memoryview(b"" if data is None else data)
    digest = xxhash.xxh3_64_intdigest
    hashes = (digest(view[start:end]) for start, end in pairwise(bounds))
    return np.fromiter(hashes, np.uint64, len(chunk))


def _numbers(chunk: pa.Array) -> NDArray[np.int64]:
    """The eight bytes of each value."""
    data = chunk.buffers()[1]
    numbers = np.zeros(len(chunk), np.int64) if data is None else np.frombuffer(data, np.int64)
    return numbers[chunk.offset :][: len(chunk)]


def _hash_doubles(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    whole = (np.floor(values) == values) & (np.abs(values) < 2.0**63)
    bits = np.ascontiguousarray(values).view(np.uint64).copy()
    bits[whole] = values[whole].astype(np.int64).view(np.uint64)
    return mix(bits)
