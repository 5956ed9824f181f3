"""JSON text to Arrow values, without guessing.

Arrow types follow JSON's own: a string is never read as a date or a number, an integer stays exact. What has no honest
Arrow type (mixed types, integers beyond 64 bits, objects with hundreds of keys) becomes a *JSON column*: a string
column whose field carries `JSON_MARK` and whose values are JSON text. Nothing here knows about lines, rows or files.

Strings are `pa.string()` everywhere: its offsets are 32 bits, and columns are chunked long before 2 GiB.
"""

import json
import sys
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.tasks.byte_search import find_byte, unpack_bits
from gristmill.tasks.text_columns import from_texts, to_bitmap

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

JSON_MARK = {b"gristmill.type": b"json"}
MAX_STRUCT_FIELDS = 64  # an object used as a map would become a struct with a column for each key it ever had
_MAX_DEPTH = 32
_PIECE_BYTES = 1 << 19
_EXACT_IN_DOUBLE = 2**53
_SCALARS: dict[frozenset[type], pa.DataType] = {
    frozenset({str}): pa.string(),
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
}
_NOT_ARROW = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeEncodeError)

_decode_any = msgspec.json.Decoder().decode
_decode_strings = msgspec.json.Decoder(list[str | None]).decode

# What each character after a backslash stands for; 0 marks those that take more than a table.
_ESCAPES = np.zeros(256, np.uint8)
for _name, _meaning in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPES[_name] = _meaning


def is_json(field: pa.Field) -> bool:
    """Whether a column holds JSON text standing for values of any kind."""
    return bool(field.metadata) and JSON_MARK.items() <= field.metadata.items()


def loads(text: bytes | str) -> JsonValue:
    """Parse one JSON value; where msgspec refuses what Python's json takes (NaN, lone surrogates), as Python does."""
    try:
        return _decode_any(text)  # type: ignore[no-any-return]
    except msgspec.DecodeError:
        return _without_surrogates(_loads_as_python(text if isinstance(text, str) else text.decode()))


class LongNumber(ValueError):
    """A number of so many digits that Python refuses to read it, which takes time by their square."""


def _loads_as_python(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnicodeError):
            raise
        most = sys.get_int_max_str_digits()
        raise LongNumber(f"expected whole numbers of at most {most:,} digits; got one with more") from None
    return value


def _without_surrogates(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def replace_surrogates(text: str) -> str:
    """Put U+FFFD for what UTF-8 cannot hold: half of a surrogate pair, written as an escape."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_column(name: str, texts: Sequence[bytes | None]) -> tuple[pa.Field, pa.ChunkedArray]:
    """Make a column of JSON texts; None stands for a missing value."""
    strings = _parse_strings(texts)
    if strings is not None:
        return pa.field(name, strings.type), pa.chunked_array([strings])
    try:
        array = infer(_parse_values(texts))
    except LongNumber:  # which only a text can hold
        array = None
    if array is not None:
        return pa.field(name, array.type), _chunked(array)
    array = pa.array([None if t is None or bytes(t) == b"null" else bytes(t).decode() for t in texts], pa.string())
    return pa.field(name, pa.string(), metadata=JSON_MARK), _chunked(array)


def infer(values: list[JsonValue]) -> pa.Array | pa.ChunkedArray | None:
    """Return an Arrow array that says exactly what the values say, or None if there is none."""
    kinds = frozenset(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if kinds == {int, float} and not all(abs(v) <= _EXACT_IN_DOUBLE for v in values if type(v) is int):
        return None
    try:
        if kinds in _SCALARS:
            return pa.array(values, _SCALARS[kinds])
        if kinds == {list} or (kinds == {dict} and _count_keys(values) <= MAX_STRUCT_FIELDS):
            array = pa.array(values)
            return array if _is_storable(array.type) else None
    except _NOT_ARROW:
        pass
    return None


def _count_keys(values: list[JsonValue]) -> int:
    return len({key for value in values if isinstance(value, dict) for key in value})


def _is_storable(kind: pa.DataType, depth: int = 0) -> bool:
    """Parquet has no objects without fields; Arrow's files end at 64 levels."""
    if depth > _MAX_DEPTH or (pa.types.is_struct(kind) and not kind.num_fields):
        return False
    return all(_is_storable(kind.field(i).type, depth + 1) for i in range(kind.num_fields))


def _parse_values(texts: Sequence[bytes | None]) -> list[JsonValue]:
    joined = b"[" + b",".join([b"null" if t is None else t for t in texts]) + b"]"
    try:
        return _decode_any(joined)  # type: ignore[no-any-return]
    except (msgspec.DecodeError, RecursionError):
        return [None if t is None else loads(bytes(t)) for t in texts]


def _parse_strings(texts: Sequence[bytes | None]) -> pa.Array | None:
    """Parse texts that are all strings or null; None if some are something else, or none is a string.

    In pieces that fit the cache: fresh memory costs more than parsing (docs/log/2026-11-15-jsonl.md).
    """
    lengths = np.fromiter((4 if text is None else len(text) for text in texts), np.int64, len(texts))
    ends = np.cumsum(lengths)
    if not len(ends) or ends[-1] > np.iinfo(np.int32).max:
        return None
    data, used = pa.allocate_buffer(int(ends[-1])), 0
    offsets = np.zeros(len(texts) + 1, np.int32)
    is_null = np.zeros(len(texts), bool)
    start = 0
    while start < len(texts):
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] - lengths[start] + _PIECE_BYTES)))
        piece = _parse_some_strings(texts[start:stop], lengths[start:stop])
        if piece is None:
            return None
        piece_valid, piece_offsets, piece_data = piece.buffers()
        offsets[start + 1 : stop + 1] = np.frombuffer(piece_offsets, np.int32, len(piece) + 1)[1:] + used
        size = int(offsets[stop]) - used
        if size:
            memoryview(data)[used : used + size] = memoryview(piece_data)[:size]
        if piece.null_count:
            is_null[start:stop] = ~unpack_bits(piece_valid, piece.offset, len(piece))
        start, used = stop, used + size
    if is_null.all():
        return None
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), data.slice(0, used), to_bitmap(~is_null))


def _parse_some_strings(texts: Sequence[bytes | None], lengths: NDArray[np.int64]) -> pa.Array | None:
    known = [b"null" if text is None else text for text in texts]
    joined = bytearray().join(known)
    if joined[0] not in b'"n':
        return None
    if not joined.isascii():
        found = _unescape(joined, lengths)
        if found is not None:
            return found
    # In ASCII text making Python strings is copying: faster than anything numpy can do about the escapes.
    try:
        values = _decode_strings(b"[" + b",".join(known) + b"]")
    except (msgspec.DecodeError, RecursionError):
        return None
    return from_texts(values)


def _unescape(text: bytearray, lengths: NDArray[np.int64]) -> pa.Array | None:
    r"""Parse strings by deleting their quotes and backslashes; None where that is not enough (`\uXXXX`, null, numbers).

    Making Python strings of non-ASCII text, and UTF-8 of those, costs twice as much (docs/log/2026-11-15-jsonl.md).
    """
    source = np.frombuffer(text, np.uint8)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    if (source[starts] != ord('"')).any():
        return None
    slashes = find_byte(source, ord("\\"))
    # In a run of backslashes every second one is itself escaped.
    counted = np.arange(len(slashes))
    run_start = np.maximum.accumulate(np.where(np.diff(slashes, prepend=-2) != 1, counted, 0))
    escapes = slashes[(counted - run_start) % 2 == 0]
    meanings = _ESCAPES[source[escapes + 1]]
    if not meanings.all():
        return None
    source[escapes + 1] = meanings
    # A NUL is written \u0000, so there is none here yet; deleting one byte everywhere is what bytes do fastest.
    source[escapes] = source[starts] = source[ends - 1] = 0
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths - 2 - np.diff(np.searchsorted(escapes, ends), prepend=0), out=offsets[1:])
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(text.replace(b"\0", b"")))


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
