"""`texts_of_lines`: one field of JSON lines as texts for kernels, without making an Arrow column of it.

Who only counts needs no column, and a column of a batch that loses rows would be copied again.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.text.layout import BLOCK
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.statistics.text_column import ROOM_BEFORE, TextColumn
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines

_ROOM_BEHIND = BLOCK  # what is copied at a time
_unescape_strings = CompiledKernel("text.json_strings", "unescape_strings")


class FieldTexts(NamedTuple):
    """The texts, and which of them are missing or null."""

    texts: TextColumn
    is_null: NDArray[np.bool_]


def unparsed_texts(batch: DocumentBatch, name: str) -> FieldTexts | None:
    """Return the texts of a field straight from JSON lines, while nobody has asked for it as a column; else None."""
    lines = batch.lines
    if lines is None or name in batch.parsed_columns() or not lines.is_live(name):
        return None
    return texts_of_lines(lines, name)


def texts_of_lines(lines: JsonLines, name: str) -> FieldTexts | None:
    """Return the texts of a field; None where it is not always a string or null, or holds half a surrogate pair."""
    if not len(lines):
        return None
    data, starts, stops = _places(lines, name)
    size = ROOM_BEFORE + int((stops - starts).sum()) + _ROOM_BEHIND
    out = np.frombuffer(pa.allocate_buffer(size), np.uint8)  # Arrow's pool gives the same pages to the next batch
    bounds = np.empty(len(lines) + 1, np.int64)
    nulls = np.empty(len(lines), np.uint8)
    is_text = _unescape_strings(*(data, starts, stops, len(lines)), *(_meanings(), out, ROOM_BEFORE, bounds, nulls))
    if not is_text:
        return None
    return FieldTexts(TextColumn(out, bounds[:-1].copy(), bounds[1:].copy()), nulls != 0)


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
