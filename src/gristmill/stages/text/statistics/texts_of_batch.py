"""`texts_of_batch`: a column of a batch as texts for kernels, from its JSON lines while nobody has parsed it."""

import pyarrow as pa

from gristmill.kernels.arrow_arrays import is_null
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.stages.text.statistics.texts_of_lines import FieldTexts, texts_of_lines
from gristmill.tasks import DocumentBatch


def texts_of_batch(batch: DocumentBatch, name: str) -> FieldTexts:
    """Return the texts; numbers and other values as Arrow prints them."""
    lines = batch.lines
    if lines is not None and name not in batch.parsed_columns() and lines.is_live(name):
        found = texts_of_lines(lines, name)
        if found is not None:
            return found
    column = batch.column(name)
    texts = TextColumn.of(column) or TextColumn.of(column.cast(pa.string()))
    assert texts is not None  # noqa: S101  # it was just made a column of texts
    return FieldTexts(texts, is_null(column))
