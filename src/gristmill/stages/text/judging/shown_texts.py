"""`ShownTexts`: documents that are judged, as examples of a measure show them.

Which documents are examples must not depend on where in a batch they are: neighbouring stages take a batch in one pass,
but one after another once something has failed, and then rows have other numbers. So a key is made of the text.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.row_hash import hash_bytes, hash_column, mix
from gristmill.metrics.observation_parts import shown_text
from gristmill.stages.measured import Excerpts, Shown, excerpt, ids_in_lines, of_line, text_keys
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines

Rows = NDArray[np.int64]


class ShownTexts:
    """The documents of a batch, by a column of their texts."""

    def __init__(self, batch: DocumentBatch, column: TextColumn, keys: NDArray[np.uint64] | None = None) -> None:
        self.batch = batch
        self._column = column
        self._keys = keys

    def texts(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the texts, unless there are keys already."""
        return None if self._keys is not None else (self._column.data, self._column.starts, self._column.stops)

    def keys(self) -> NDArray[np.uint64]:
        """Return a number for every text."""
        column = self._column
        return text_keys(column.data, column.starts, column.stops) if self._keys is None else self._keys

    def excerpts(self, rows: Rows, *, with_texts: bool = True) -> Excerpts:
        """Return some of the documents as examples."""
        ids, are_json = self._ids(rows)
        if not with_texts:
            return Excerpts(ids, (), are_json)
        view = self._column.data.data
        bounds = zip(self._column.starts[rows].tolist(), self._column.stops[rows].tolist(), strict=True)
        return Excerpts(ids, [excerpt(view[start:stop]) for start, stop in bounds], are_json)

    def _ids(self, rows: Rows) -> tuple[Sequence[bytes], bool]:
        """Return ids, and whether they are as JSON has them."""
        batch, lines = self.batch, self.batch.lines
        if "id" in batch.parsed_columns():
            found = batch.column("id").take(pa.array(rows, pa.int64())).to_pylist()
            return [b"" if name is None else shown_text(str(name)).encode() for name in found], False
        if lines is None or not lines.is_live("id"):
            return [b""] * len(rows), False
        return ids_in_lines(*_lines_at(lines, rows)), True


class ShownLines:
    """The documents of a batch of JSON lines whose texts have not been looked for: by the whole lines."""

    def __init__(self, batch: DocumentBatch, lines: JsonLines) -> None:
        self.batch = batch
        self._lines = lines

    def texts(self) -> None:
        """Return None: they are not known."""
        return

    def keys(self) -> NDArray[np.uint64]:
        """Return a hash of every line."""
        return hash_bytes(self._lines.values, np.dtype(np.int64))

    def excerpts(self, rows: Rows, *, with_texts: bool = True) -> Excerpts:
        """Return some of the documents as examples, always with texts."""
        del with_texts
        data, bounds = _lines_at(self._lines, rows)
        found = [of_line(data[start:stop]) for start, stop in bounds]
        return Excerpts([name.encode() for name, _ in found], [text.encode() for _, text in found])


def _lines_at(lines: JsonLines, rows: Rows) -> tuple[memoryview, Iterator[tuple[int, int]]]:
    """Return the bytes of all lines, and where in them some begin and end."""
    offsets = lines.offsets()
    bounds = zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True)
    return memoryview(lines.values.buffers()[2] or b""), bounds


def shown_batch(batch: DocumentBatch) -> Shown:
    """The documents of a batch of which no text was measured: by the texts there are, or else by their JSON lines."""
    lines = batch.lines
    if lines is not None and "text" not in batch.parsed_columns():
        return ShownLines(batch, lines)
    column = TextColumn.of(batch.column("text")) if batch.has_column("text") else None
    if column is not None:
        return ShownTexts(batch, column)
    nothing = np.zeros(batch.num_items, np.int64)
    keys = (
        hash_column(batch.column("id")) if batch.has_column("id") else mix(np.arange(batch.num_items).view(np.uint64))
    )
    return ShownTexts(batch, TextColumn(np.zeros(1, np.uint8), nothing, nothing), keys)
