"""`ShownTexts`: documents that are judged, as examples of a measure show them.

Which documents are examples must not depend on where in a batch they are: neighbouring stages take a batch in one pass,
but one after another once something has failed, and then rows have other numbers. So a key is made of the text.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.row_hash import hash_bytes, hash_column, mix
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.measured import (
    EXCERPT_BYTES,
    Document,
    Shown,
    id_of_line,
    of_line,
    shown_source,
    shown_text,
    text_key,
)
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines

_text_keys = CompiledKernel("tally", "text_keys")


class ShownTexts:
    """The documents of a batch, by a column of their texts."""

    def __init__(self, batch: DocumentBatch, column: TextColumn, keys: NDArray[np.uint64] | None = None) -> None:
        self.batch = batch
        self._column = column
        self._keys = keys

    def keys(self, *, compiled: bool) -> NDArray[np.uint64]:
        """Return a number for every text. Few of them are made in Python: loading compiled code takes 0.1 s."""
        if self._keys is None:
            column = self._column
            if compiled:
                self._keys = np.empty(len(column), np.uint64)
                _text_keys(column.data, column.starts, column.stops, len(column), self._keys)
            else:
                texts = (self._bytes(row, column.stops[row]) for row in range(len(column)))
                self._keys = np.fromiter((text_key(text) for text in texts), np.uint64, len(column))
        return self._keys

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Return some of the documents as examples."""
        keys = self.keys(compiled=False)[rows].tolist()
        source, place = shown_source(self.batch), self.batch.task_id
        texts = [self._excerpt(row) for row in rows]
        each = zip(keys, self._ids(rows), texts, strict=True)
        return [Document(key, name, source, place, text) for key, name, text in each]

    def _excerpt(self, row: int) -> str:
        stop = min(self._column.stops[row], self._column.starts[row] + EXCERPT_BYTES)
        return shown_text(self._bytes(row, stop).decode("utf-8", "ignore"))  # cut within a character

    def _bytes(self, row: int, stop: int) -> bytes:
        return self._column.data[self._column.starts[row] : stop].tobytes()

    def _ids(self, rows: Sequence[int]) -> Sequence[str]:
        batch, lines = self.batch, self.batch.lines
        if "id" in batch.parsed_columns():
            found = batch.column("id").take(pa.array(rows, pa.int64())).to_pylist()
            return ["" if name is None else shown_text(str(name)) for name in found]
        if lines is None or not lines.is_live("id"):
            return [""] * len(rows)
        return [id_of_line(line) for line in _lines_at(lines, rows)]


class ShownLines:
    """The documents of a batch of JSON lines that nobody has looked into for their texts: by the whole lines."""

    def __init__(self, batch: DocumentBatch, lines: JsonLines) -> None:
        self.batch = batch
        self._lines = lines
        self._keys: NDArray[np.uint64] | None = None

    def keys(self, *, compiled: bool) -> NDArray[np.uint64]:
        """Return a hash of every line."""
        del compiled
        if self._keys is None:
            self._keys = hash_bytes(self._lines.values, np.dtype(np.int64))
        return self._keys

    def documents(self, rows: Sequence[int]) -> list[Document]:
        """Return some of the documents as examples."""
        keys, source, place = self.keys(compiled=False), shown_source(self.batch), self.batch.task_id
        found = [of_line(line) for line in _lines_at(self._lines, rows)]
        return [
            Document(int(keys[row]), name, source, place, text) for row, (name, text) in zip(rows, found, strict=True)
        ]


def _lines_at(lines: JsonLines, rows: Sequence[int]) -> list[memoryview]:
    offsets, data = lines.offsets(), memoryview(lines.values.buffers()[2] or b"")
    return [data[offsets[row] : offsets[row + 1]] for row in rows]


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
