"""`texts_of_batch`: a column of a batch as texts for kernels, from its JSON lines while nobody has parsed it."""

from collections.abc import Iterator

import pyarrow as pa

from gristmill.kernels.arrow_arrays import is_null
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.stages.text.statistics.texts_of_lines import FieldTexts, texts_of_lines
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.json_text import loads
from gristmill.tasks.text_columns import from_texts

PIECE_BYTES = 1 << 20


def texts_of_batch(batch: DocumentBatch, name: str) -> FieldTexts:
    """Return the texts. What is no string is taken as its line has it, or as Arrow prints it if there are no lines."""
    lines = batch.lines
    if lines is not None and name not in batch.parsed_columns() and lines.is_live(name):
        return texts_of_lines(lines, name) or _written(lines, name)
    return _of_column(batch.column(name))


def text_pieces(batch: DocumentBatch, name: str) -> Iterator[FieldTexts]:
    """Yield the texts of a batch about a megabyte at a time: for who reads them once, in memory that is used again."""
    step = max(1, batch.num_items * PIECE_BYTES // max(1, batch.nbytes))
    for first in range(0, batch.num_items, step):
        yield texts_of_batch(batch.slice(first, step), name)


def _written(lines: JsonLines, name: str) -> FieldTexts:
    """Each text by itself: what it is must not depend on what else is in the batch."""
    values = [None if text is None else _plain(bytes(text)) for text in lines.texts(name)]
    return _of_column(pa.chunked_array([from_texts(values)]))


def _plain(text: bytes) -> str | None:
    value = loads(text)
    return value if value is None or isinstance(value, str) else text.decode()


def _of_column(column: pa.ChunkedArray) -> FieldTexts:
    texts = TextColumn.of(column) or TextColumn.of(column.cast(pa.string()))
    assert texts is not None  # noqa: S101  # it was just made a column of texts
    return FieldTexts(texts, is_null(column))
