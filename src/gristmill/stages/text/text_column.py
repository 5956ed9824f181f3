"""`TextColumn`: a column of texts as the bytes and ranges that kernels work on, and the ways to come by one.

The texts of a batch that was read from JSON lines are taken straight from the lines while nobody has asked for them as
a column: whoever only counts needs no Arrow column, and one of a batch that loses rows would be copied again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import is_null
from gristmill.kernels.text.layout import BLOCK
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.json_text import loads
from gristmill.tasks.text_columns import from_texts

PIECE_BYTES = 1 << 20
ROOM_BEFORE = BLOCK  # kernels load as many bytes that end where a text ends

_OFFSETS = {pa.string(): np.int32, pa.large_string(): np.int64}
_NO_BYTES = np.zeros(1, np.uint8)
_ROOM_BEHIND = BLOCK  # what is copied at a time
_unescape_strings = CompiledKernel("text.json_strings", "unescape_strings")


@dataclass(frozen=True)
class TextColumn:
    """Document d is `data[starts[d]:stops[d]]`, UTF-8; a missing one is empty there."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    nulls: NDArray[np.bool_] | None = None  # which are missing; None if none is

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TextColumn | None":
        """Return the texts of a column, sharing its memory where it has one chunk; None if it holds no texts."""
        if pa.types.is_null(column.type):
            nothing = np.zeros(len(column), np.int64)
            return cls(_NO_BYTES, nothing, nothing, np.ones(len(column), np.bool_))
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if column.type not in _OFFSETS:
            return None
        if column.num_chunks != 1:
            column = pa.chunked_array([column.cast(pa.large_string()).combine_chunks()])
        return cls._of_array(column.chunk(0), is_null(column))

    @classmethod
    def _of_array(cls, array: pa.Array, null: NDArray[np.bool_]) -> "TextColumn":
        _, offsets, data = array.buffers()
        if not len(array) or offsets is None:
            return cls(_NO_BYTES, np.zeros(0, np.int64), np.zeros(0, np.int64))
        width = np.dtype(_OFFSETS[array.type])
        bounds = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize).astype(np.int64)
        starts, stops, nulls = bounds[:-1].copy(), bounds[1:].copy(), null if null.any() else None
        if nulls is not None:  # what an Arrow array has at the place of a null is not specified, and may be bytes
            stops[nulls] = starts[nulls]
        given = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
        first = stops[stops > starts][:1]
        if len(first) and first[0] < ROOM_BEFORE:
            given = np.concatenate([np.zeros(ROOM_BEFORE, np.uint8), given])
            starts, stops = starts + ROOM_BEFORE, stops + ROOM_BEFORE
        return cls(given, starts, stops, nulls)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def is_null(self) -> NDArray[np.bool_]:
        """bool[D]: whether a text is missing."""
        return np.zeros(len(self), np.bool_) if self.nulls is None else self.nulls

    @property
    def num_bytes(self) -> int:
        """The bytes of all documents."""
        return int((self.stops - self.starts).sum())

    @property
    def longest(self) -> int:
        """The bytes of the longest document."""
        return int((self.stops - self.starts).max(initial=0))

    def take(self, rows: NDArray[np.int64]) -> "TextColumn":
        """Return some of the documents, sharing their memory."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return TextColumn(self.data, self.starts[rows], self.stops[rows], nulls)


def texts_of_batch(batch: DocumentBatch, name: str) -> TextColumn:
    """Return the texts. What is not a string is taken as its line has it, or as Arrow prints it without lines."""
    lines = batch.lines
    if lines is not None and name not in batch.parsed_columns() and lines.is_live(name):
        return texts_of_lines(lines, name) or _as_written(lines, name)
    return _printed(batch.column(name))


def text_pieces(batch: DocumentBatch, name: str) -> Iterator[TextColumn]:
    """Yield the texts of a batch about a megabyte at a time, in memory that is used again: to be read once."""
    step = max(1, batch.num_items * PIECE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_items, step):
        yield texts_of_batch(batch.slice(first, step), name)


def unparsed_texts(batch: DocumentBatch, name: str) -> TextColumn | None:
    """Return the texts of a field straight from JSON lines, while nobody has asked for it as a column; else None."""
    lines = batch.lines
    if lines is None or name in batch.parsed_columns() or not lines.is_live(name):
        return None
    return texts_of_lines(lines, name)


def texts_of_lines(lines: JsonLines, name: str) -> TextColumn | None:
    """Return the texts of a field; None where it is not always a string or null, or holds half a surrogate pair."""
    if not len(lines):
        return None
    data, starts, stops = _places(lines, name)
    size = ROOM_BEFORE + int((stops - starts).sum()) + _ROOM_BEHIND
    out = np.frombuffer(pa.allocate_buffer(size), np.uint8)  # Arrow's pool gives the same pages to the next batch
    bounds = np.empty(len(lines) + 1, np.int64)
    nulls = np.empty(len(lines), np.uint8)
    is_text = _unescape_strings(*(data, starts, stops, len(lines)), *(_meanings(), out, ROOM_BEFORE, bounds, nulls))
    return TextColumn(out, bounds[:-1].copy(), bounds[1:].copy(), nulls != 0) if is_text else None


def _places(lines: JsonLines, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return bytes, and where in them the JSON text of each line's field is; nowhere if it is missing."""
    known = lines.places_of(name)
    if known is not None:
        return np.frombuffer(lines.values.buffers()[2], np.uint8), known.starts, known.stops
    values = lines.texts(name)
    base = np.zeros(1, np.uint8)  # texts are anywhere in memory: their places are counted from here
    origin = base.ctypes.data
    starts = np.fromiter((origin if v is None else pa.py_buffer(v).address for v in values), np.int64, len(values))
    starts -= origin
    stops = starts + np.fromiter((0 if v is None else len(v) for v in values), np.int64, len(values))
    return base, starts, stops


@cache
def _meanings() -> NDArray[np.uint8]:
    meanings = np.zeros(256, np.uint8)
    meanings[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
    return meanings


def _as_written(lines: JsonLines, name: str) -> TextColumn:
    """Each text by itself: what it is must not depend on what else is in the batch."""
    values = [None if text is None else _plain(bytes(text)) for text in lines.texts(name)]
    return _printed(pa.chunked_array([from_texts(values)]))


def _plain(text: bytes) -> str | None:
    value = loads(text)
    return value if value is None or isinstance(value, str) else text.decode()


def _printed(column: pa.ChunkedArray) -> TextColumn:
    texts = TextColumn.of(column) or TextColumn.of(column.cast(pa.string()))
    assert texts is not None  # noqa: S101  # it was just made a column of texts
    return texts
