"""`DocumentSplitter`: one document, several rows."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.line_blocks import line_bounds
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.text_columns import from_texts


@dataclass
class DocumentSplitter(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Make a row for each piece of a text between separators, numbered from 0 in `segment_id_field`.

    The other columns are repeated. Give documents an id first (`AddId`), and `DocumentJoiner` can put them together
    again. A missing text is one missing piece.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    separator: str
    text_field: str = "text"
    segment_id_field: str = "segment_id"
    _: KW_ONLY
    name: str = "document_splitter"

    def __post_init__(self) -> None:
        if not self.separator:
            raise ConfigError(f"{self.name}: expected a separator of at least one character; got {self.separator!r}")

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field, self.segment_id_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = task.column(self.text_field).to_pylist()
        pieces = [[None] if text is None else text.split(self.separator) for text in texts]
        counts = np.fromiter(map(len, pieces), np.int64, len(pieces))
        ends = np.cumsum(counts)
        numbers = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
        if len(numbers) > len(texts):
            rows = from_numbers(np.repeat(np.arange(len(texts)), counts))
            flat = from_texts([piece for of_one in pieces for piece in of_one])
            task = without_values(task, self.text_field).take(rows).with_column(self.text_field, flat)
        return task.with_column(self.segment_id_field, from_numbers(numbers))


def without_values(batch: DocumentBatch, field: str) -> DocumentBatch:
    """Return a batch whose rows no longer hold this field's values, which would be repeated with every piece.

    A text of a megabyte in a thousand pieces would otherwise be there a thousand times, in the line of each.
    """
    emptied = batch.with_column(field, pa.nulls(batch.num_items, pa.string()))
    if emptied.lines is None:
        return emptied
    block = b"".join(encode_lines(emptied))
    values = pa.Array.from_buffers(
        pa.large_binary(), batch.num_items, [None, pa.py_buffer(line_bounds(block)), pa.py_buffer(block)]
    )
    lighter = DocumentBatch.from_lines(batch.dataset_name, JsonLines(values))
    lighter.inherit(batch)
    lighter.task_id = batch.task_id
    for name in emptied.parsed_columns():
        if not emptied.lines.is_live(name):  # a column of its own keeps its type, which JSON may not have
            lighter = lighter.with_column(name, emptied.column(name), emptied.field(name))
    return lighter
