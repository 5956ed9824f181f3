"""`JsonLines`: the bytes a batch was read from, and which fields of them still hold.

Each row of a batch read from JSONL keeps its line. A field is *live* while the batch's column says what the line says;
it stops being live when the column is replaced or dropped. So columns are parsed only when someone asks, and a writer
may copy live fields byte for byte. Every line here is one valid JSON object in valid UTF-8: readers see to that.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented nowhere, in every Python since 2.6
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from gristmill.tasks.text_columns import find_byte, from_texts, to_bitmap, unpack_bits

# JSON text to Arrow values, without guessing.
#
# Arrow types follow JSON's own: a string is never read as a date or a number, an integer stays exact. What has no
# honest Arrow type (mixed types, integers beyond 64 bits, objects with hundreds of keys) becomes a *JSON column*: a
# string column whose field carries `JSON_MARK` and whose values are JSON text. Nothing here knows about lines, rows or
# files.
#
# Strings are `pa.string()` everywhere: its offsets are 32 bits, and columns are chunked long before 2 GiB.

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

# What each character after a backslash stands for; 0 marks those that a table cannot handle.
_ESCAPES = np.zeros(256, np.uint8)
for _name, _meaning in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _ESCAPES[_name] = _meaning


def is_json(field: pa.Field) -> bool:
    """Whether a column holds JSON text standing for values of any kind."""
    return bool(field.metadata) and JSON_MARK.items() <= field.metadata.items()


def loads(text: bytes | str) -> JsonValue:
    """Parse one JSON value; what msgspec refuses and Python's json takes (NaN, lone surrogates), as Python does."""
    try:
        return _decode_any(text)  # type: ignore[no-any-return]
    except msgspec.DecodeError:
        return _without_surrogates(_loads_as_python(text if isinstance(text, str) else text.decode()))


class LongNumber(ValueError):
    """A number of so many digits that Python refuses to read it, since that takes time by their square."""


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
    """Put U+FFFD in place of what UTF-8 cannot hold: half of a surrogate pair, written as an escape."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_column(name: str, texts: Sequence[bytes | None]) -> tuple[pa.Field, pa.ChunkedArray]:
    """Make a column of JSON texts; None stands for a missing value."""
    strings = _parse_strings(texts)
    if strings is not None:
        return pa.field(name, strings.type), pa.chunked_array([strings])
    try:
        array = infer(_parse_values(texts))
    except LongNumber:  # which only text can hold
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


Column = tuple[pa.Field, pa.ChunkedArray]

_decode_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_scan = json.JSONDecoder(parse_int=str).raw_decode  # str: only the end matters, and int refuses 5,000 digits
_MOST_VALUES = 1 << 19  # taken apart at once
_FEW_LINES = 32  # taken apart at once where there are many fields
_REFUSED = (msgspec.DecodeError, RecursionError)


class FieldTexts(msgspec.Struct, frozen=True, eq=False):
    """The JSON text of one field in every line; None where it is missing."""

    name: str
    texts: list[msgspec.Raw | None]


class FieldPlaces(msgspec.Struct, frozen=True, eq=False):
    """Where the JSON text of one field is in the lines' data buffer; from 0 to 0 where it is missing."""

    name: str
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class JsonLines(msgspec.Struct, frozen=True, eq=False):
    """Lines (each with its newline) aligned with the rows of a batch."""

    values: pa.Array  # large_binary, no nulls
    gone: frozenset[str] = frozenset()  # fields whose columns were replaced or dropped
    kept: frozenset[str] | None = None  # if not None, only these fields are meant at all
    ahead: FieldTexts | None = None  # one field that was found on the way
    places: tuple[FieldPlaces, ...] = ()  # fields a kernel has found

    def __len__(self) -> int:
        return len(self.values)

    def is_live(self, name: str) -> bool:
        """Whether the lines say what the column of this name holds, if they have it."""
        return name not in self.gone and (self.kept is None or name in self.kept)

    @property
    def is_whole(self) -> bool:
        """Whether every field of every line is live."""
        return not self.gone and self.kept is None

    def without(self, names: Iterable[str]) -> "JsonLines":
        """The same lines, in which these fields no longer count."""
        return replace(self, gone=self.gone.union(names))

    def only(self, names: Iterable[str]) -> "JsonLines":
        """The same lines, in which no other fields count."""
        return replace(self, kept=frozenset(name for name in names if self.is_live(name)))

    def with_values(self, values: pa.Array) -> "JsonLines":
        """The same fields live, of other rows."""
        return replace(self, values=values, ahead=None, places=())

    def slice(self, offset: int, length: int) -> "JsonLines":
        """Consecutive rows, without copying; what is known about places stays known."""
        rows = slice(offset, offset + length)
        places = tuple(FieldPlaces(own.name, own.starts[rows], own.stops[rows]) for own in self.places)
        return replace(self, values=self.values.slice(offset, length), ahead=None, places=places)

    @property
    def nbytes(self) -> int:
        offsets = self.offsets()
        return int(offsets[-1] - offsets[0])

    def offsets(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Where each line begins in the values' data buffer, and where the last one ends."""
        buffer = self.values.buffers()[1]
        if buffer is None or not buffer.size:
            return np.zeros(1, np.int64)
        return np.frombuffer(buffer, np.int64, len(self) + 1, self.values.offset * 8)

    def data(self) -> memoryview:
        """All lines, end to end, without a copy."""
        offsets = self.offsets()
        buffer = self.values.buffers()[2]
        return memoryview(b"") if buffer is None else memoryview(buffer)[offsets[0] : offsets[-1]]

    def objects(self) -> list[dict[str, msgspec.Raw]]:
        """Each line as its fields' JSON texts, in the line's order."""
        try:
            return _decode_objects.decode_lines(self.data())
        except _REFUSED:
            return [_fields_of(line) for line in self.values.to_pylist()]

    def all_names(self) -> list[str]:
        """All fields, live or not, in order of first appearance."""
        names: dict[str, None] = {}
        step = _FEW_LINES if self._is_wide() else max(1, len(self))
        for start in range(0, len(self), step):
            for fields in self.slice(start, step).objects():
                names |= dict.fromkeys(fields)
        return list(names)

    def texts(self, name: str) -> list[msgspec.Raw | None]:
        """The JSON text of one field in every line; None where it is missing."""
        if self.ahead is not None and self.ahead.name == name:
            return self.ahead.texts
        found = self.places_of(name)
        if found is not None:
            view = memoryview(self.values.buffers()[2])
            ranges = zip(found.starts.tolist(), found.stops.tolist(), strict=True)
            return [msgspec.Raw(view[start:stop]) if stop else None for start, stop in ranges]
        decoder = field_decoder(name)
        if decoder is not None:
            try:
                return [found.value for found in decoder.decode_lines(self.data())]
            except _REFUSED:
                pass
        return [fields.get(name) for fields in self.objects()]

    def places_of(self, name: str) -> FieldPlaces | None:
        """Return where one field is, if that is known."""
        return next((found for found in self.places if found.name == name), None)

    def parse(self, name: str) -> Column | None:
        """One field as a column, or None if no line has it."""
        texts = self.texts(name)
        return parse_column(name, texts) if any(text is not None for text in texts) else None

    def parse_all(self, *, but: Iterable[str] = ()) -> tuple[list[str], list[Column]]:
        """Return the names of all fields, live or not, and all live fields except `but` as columns."""
        known = set(but)
        if self._is_wide():
            names = self.all_names()
            return names, self._parse_in_groups([n for n in names if self.is_live(n) and n not in known])
        objects = self.objects()
        names = list(dict.fromkeys(name for fields in objects for name in fields))
        wanted = [name for name in names if self.is_live(name) and name not in known]
        return names, [parse_column(name, [fields.get(name) for fields in objects]) for name in wanted]

    def _is_wide(self) -> bool:
        """Whether taking all lines apart at once would make too many small objects: each is a hundred bytes or two."""
        return len(self) > 1 and len(self) * len(self.slice(0, 1).objects()[0]) > _MOST_VALUES

    def _parse_in_groups(self, names: list[str]) -> list[Column]:
        """Parse some columns at a time, reading the lines again for each group; its texts are freed before the next."""
        columns = []
        step = max(1, _MOST_VALUES // len(self))
        for start in range(0, len(names), step):
            group = names[start : start + step]
            columns += [parse_column(*found) for found in zip(group, self._texts_of(group), strict=True)]
        return columns

    def _texts_of(self, names: list[str]) -> list[list[msgspec.Raw | None]]:
        """The JSON texts of some fields in every line. Only a few lines at a time are in memory as a whole."""
        texts: list[list[msgspec.Raw | None]] = [[] for _ in names]
        for start in range(0, len(self), _FEW_LINES):
            for fields in self.slice(start, _FEW_LINES).objects():
                for own, name in zip(texts, names, strict=True):
                    own.append(fields.get(name))
        return texts

    def has_any(self, names: Iterable[str]) -> bool:
        """Whether some line has one of these fields, live or not."""
        return any(text is not None for name in names for text in self.texts(name))


class FoundField(msgspec.Struct):
    """What `field_decoder` decodes to."""

    value: msgspec.Raw | None


@lru_cache(maxsize=256)
def field_decoder(name: str) -> "msgspec.json.Decoder[FoundField] | None":
    """A decoder that skips everything but one field, or None if msgspec cannot spell the name."""
    try:
        struct = msgspec.defstruct("Field", [("value", msgspec.Raw, None)], rename={"value": name}, gc=False)
    except ValueError:
        return None
    return msgspec.json.Decoder(struct)


def _fields_of(line: bytes) -> dict[str, msgspec.Raw]:
    """Split an object into its fields' texts; also where a value is NaN or a lone surrogate, which msgspec refuses."""
    try:
        return _decode_objects.decode(line)
    except _REFUSED:
        return split_object(line.decode())


def split_object(text: str) -> dict[str, msgspec.Raw]:
    """Split an object as Python's json reads it; raise ValueError if it is none, RecursionError if too deep."""
    fields: dict[str, msgspec.Raw] = {}
    end = _skip_space(text, 0)
    if text[end : end + 1] != "{":
        raise ValueError("expected an object")
    _, whole = _scan(text, end)  # one check of the syntax; below it is known to be right
    if text[whole:].strip(" \t\r\n"):
        raise ValueError(f"extra data: character {whole}")
    end = _skip_space(text, end + 1)
    while text[end] != "}":
        name, end = scanstring(text, _skip_space(text, end) + 1, True)  # noqa: FBT003  # a C function: no keywords
        start = _skip_space(text, _skip_space(text, end) + 1)
        _, end = _scan(text, start)
        fields[replace_surrogates(name)] = msgspec.Raw(text[start:end].encode())
        end = _skip_space(text, end)
        if text[end] == ",":
            end = _skip_space(text, end + 1)
    return fields


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1] in (" ", "\t", "\r", "\n"):
        position += 1
    return position
