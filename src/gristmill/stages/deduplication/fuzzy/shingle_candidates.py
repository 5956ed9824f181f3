"""`ShingleCandidates`: read documents again and take the shingle sets of those that may have a duplicate."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_bools, from_lists, from_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.stages.deduplication.fork_preparation import prepare_fork
from gristmill.stages.deduplication.fuzzy.clusters import Clusters
from gristmill.stages.deduplication.fuzzy.shingling import Shingling
from gristmill.stages.text.text_column import texts_of_batch
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

NOT_A_CANDIDATE = "no_candidate"


@dataclass(eq=False)
class ShingleCandidates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce candidates to `doc`, `component`, `rank`, `keys` (one a band) and `shingles`; leave out the others.

    `clusters` is a directory of `Clusters`.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    shingling: Shingling
    banding: Banding
    clusters: str
    text_field: str = "text"
    seed: int = 42
    name: str = field(default="shingle_candidates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._clusters = Clusters.load(self.clusters)

    def before_fork(self) -> None:
        prepare_fork(folds=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self.numbers.of_batch(task.task_id, task.num_items)
        clusters = self._clusters
        chosen = clusters.candidates_in(numbers)
        doc = clusters.doc[clusters.positions[chosen]]
        rows = (doc - numbers[0]).astype(np.int64) if task.num_items else np.zeros(0, np.int64)
        mask = np.zeros(task.num_items, np.bool_)
        mask[rows] = True
        self.context.drop(task, from_bools(~mask), reason=NOT_A_CANDIDATE)
        texts = texts_of_batch(task, self.text_field).take(rows)
        keys, _, _ = self.shingling.sketch(texts, self.banding, self.seed)
        columns = {
            "doc": from_numbers(doc),
            "component": from_numbers(clusters.component[chosen]),
            "rank": from_numbers(clusters.rank[chosen]),
            "keys": _key_lists(keys),
            "shingles": from_lists(*self.shingling.sets(texts)),
        }
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def _key_lists(keys: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> pa.Array:
    num_bands, num_docs = keys.shape
    return from_lists(np.ascontiguousarray(keys.T).ravel(), np.arange(num_docs + 1, dtype=np.int64) * num_bands)
