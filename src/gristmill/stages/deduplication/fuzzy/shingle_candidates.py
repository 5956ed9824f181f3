"""`ShingleCandidates`: read documents again and take the shingle sets of those that may have a duplicate."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_bools, from_lists, from_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.stages.deduplication.fuzzy.candidates import Candidates
from gristmill.stages.deduplication.fuzzy.shingling import Shingling
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import end_to_end

NOT_A_CANDIDATE = "no_candidate"


@dataclass(eq=False)
class ShingleCandidates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce candidates to `doc`, `component`, `rank`, `keys` (one a band) and `shingles`; leave out the others.

    `candidates` is a directory of `Candidates`.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position

    numbers: DocumentNumbers
    shingling: Shingling
    banding: Banding
    candidates: str
    text_field: str = "text"
    seed: int = 42
    name: str = field(default="shingle_candidates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._candidates = Candidates.load(self.candidates)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self.numbers.of_batch(task.task_id, task.num_items)
        chosen = self._candidates.between(numbers)
        mask = np.zeros(task.num_items, np.bool_)
        rows = (chosen.doc - numbers[0]).astype(np.int64) if task.num_items else np.zeros(0, np.int64)
        mask[rows] = True
        self.context.drop(task, from_bools(~mask), reason=NOT_A_CANDIDATE)
        texts = end_to_end(task.column(self.text_field).filter(from_bools(mask)))
        keys, _, _ = self.shingling.sketch(texts, self.banding, self.seed)
        columns = {
            "doc": from_numbers(chosen.doc),
            "component": from_numbers(chosen.component),
            "rank": from_numbers(chosen.rank),
            "keys": _key_lists(keys),
            "shingles": from_lists(*self.shingling.sets(texts)),
        }
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def _key_lists(keys: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> pa.Array:
    num_bands, num_docs = keys.shape
    return from_lists(np.ascontiguousarray(keys.T).ravel(), np.arange(num_docs + 1, dtype=np.int64) * num_bands)
