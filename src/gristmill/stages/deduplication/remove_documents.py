"""`RemoveDocuments`: leave out the documents whose numbers are in a file, in the stage that reads them again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.array_files import write_array
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

REASON = "duplicate"
_END = np.uint64(2**64 - 1)  # closes the file, so that it is never empty and can be mapped


def write_removals(path: Path, removed: NDArray[np.uint64]) -> None:
    """Write the file `RemoveDocuments` reads; it appears whole or not at all."""
    write_array(path, np.append(np.sort(removed), _END))


@dataclass(eq=False)
class RemoveDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop documents by number. `removals` is a file of `write_removals`, mapped by every worker."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True

    numbers: DocumentNumbers
    removals: str
    name: str = field(default="remove_duplicates", kw_only=True)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._removed: NDArray[np.uint64] = np.load(self.removals, mmap_mode="r")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self.numbers.of_batch(task.task_id, task.num_items)
        lost = np.zeros(task.num_items, np.bool_)
        if task.num_items:
            first, end = np.searchsorted(self._removed, [numbers[0], numbers[-1] + np.uint64(1)])
            lost[(self._removed[first:end] - numbers[0]).astype(np.int64)] = True
        mask = from_bools(lost)
        self.context.drop(task, mask, reason=REASON)
        return task.filter(from_bools(~lost))
