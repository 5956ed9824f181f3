"""`JsonLines`: the bytes a batch was read from, and which fields of them still hold.

Each row of a batch read from JSONL keeps its line. A field is *live* while the batch's column says what the line says;
it stops being live when the column is replaced or dropped. So columns are parsed only when someone asks, and a writer
may copy live fields byte for byte. Every line here is one valid JSON object in valid UTF-8: readers see to that.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented nowhere, in every Python since 2.6

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.tasks.json_text import parse_column, replace_surrogates

Column = tuple[pa.Field, pa.ChunkedArray]

_decode_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_scan = json.JSONDecoder(parse_int=str).raw_decode  # str: only the end matters, and int refuses 5,000 digits
_MOST_VALUES = 1 << 19  # taken apart at once
_FEW_LINES = 32  # taken apart at once where there are many fields
_REFUSED = (msgspec.DecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class FieldTexts:
    """The JSON text of one field in every line; None where it is missing."""

    name: str
    texts: list[msgspec.Raw | None]


@dataclass(frozen=True, slots=True)
class FieldPlaces:
    """Where the JSON text of one field is in the lines' data buffer; from 0 to 0 where it is missing."""

    name: str
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines (each with its newline) aligned with the rows of a batch."""

    values: pa.Array  # large_binary, no nulls
    gone: frozenset[str] = frozenset()  # fields whose columns were replaced or dropped
    kept: frozenset[str] | None = None  # if not None, only these fields are meant at all
    ahead: FieldTexts | None = field(default=None, repr=False, compare=False)  # one field that was found on the way
    places: tuple[FieldPlaces, ...] = field(default=(), repr=False, compare=False)  # fields a kernel has found

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
        """The same lines, where these fields no longer count."""
        return replace(self, gone=self.gone.union(names))

    def only(self, names: Iterable[str]) -> "JsonLines":
        """The same lines, where no other fields count."""
        return replace(self, kept=frozenset(name for name in names if self.is_live(name)))

    def with_values(self, values: pa.Array) -> "JsonLines":
        """Other rows, same standing of the fields."""
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
        """Return the names of all fields, live or not, and all live fields but some as columns."""
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
        """Parse some columns at a time, reading the lines again for each group; its texts are gone before the next."""
        columns = []
        step = max(1, _MOST_VALUES // len(self))
        for start in range(0, len(names), step):
            group = names[start : start + step]
            columns += [parse_column(*found) for found in zip(group, self._texts_of(group), strict=True)]
        return columns

    def _texts_of(self, names: list[str]) -> list[list[msgspec.Raw | None]]:
        """The JSON texts of some fields in every line. A few lines at a time are whole in memory."""
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
    """Split an object as Python's json reads it; raise ValueError if it is none, RecursionError if it is too deep."""
    fields: dict[str, msgspec.Raw] = {}
    end = _skip_space(text, 0)
    if text[end : end + 1] != "{":
        raise ValueError("expected an object")
    _, whole = _scan(text, end)  # one check of the syntax; below it is known to be right
    if text[whole:].strip(" \t\r\n"):
        raise ValueError(f"extra data: character {whole}")
    end = _skip_space(text, end + 1)
    while text[end] != "}":
        name, end = scanstring(text, _skip_space(text, end) + 1, True)  # noqa: FBT003  # the C function takes no keywords
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
