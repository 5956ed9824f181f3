"""`TakeDocuments`: a few documents by number, to show them to a person."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.tasks import DocumentBatch

NOT_WANTED = "not_wanted"


@dataclass(eq=False)
class TakeDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return the documents that are wanted as rows of `doc` and `text`; nothing else of them is parsed."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    wanted: list[int]
    text_field: str = "text"
    name: str = field(default="take_documents", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        own = self.numbers.of_batch(task.task_id, task.num_items)
        is_wanted = np.isin(own, np.array(self.wanted, np.uint64))
        self.context.drop(task, from_bools(~is_wanted), reason=NOT_WANTED)
        texts = task.filter(from_bools(is_wanted)).column(self.text_field).cast(pa.string())
        columns = [from_numbers(own[is_wanted]), texts]
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(columns, names=["doc", "text"]))
