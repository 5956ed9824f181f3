"""`SketchDocuments`: of each document a key for every band and what decides whether it stays."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_lists, from_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.kernels.row_hash import hash_column
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.stages.deduplication.document_worth import worth_of
from gristmill.stages.deduplication.fork_preparation import prepare_fork
from gristmill.stages.deduplication.fuzzy.shingling import Shingling
from gristmill.stages.deduplication.id_column import id_column
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.stages.text.text_column import texts_of_batch
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts


@dataclass(eq=False)
class SketchDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to `doc`, `low`, `high`, `worth`, `tie`, `size`, `band_0`… and, with `id_field`, `id`.

    `low` and `high` hash the folded words: documents that agree there are the same for any shingling. `size` is 0 for a
    document that has nothing to compare. With `for_index`, the shingle sets come too, and every document has an `id`:
    its number, if it has no other.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    shingling: Shingling
    banding: Banding
    text_field: str = "text"
    id_field: str | None = None
    keep: KeepPolicy = field(default_factory=KeepPolicy)
    seed: int = 42
    for_index: bool = False
    name: str = field(default="sketch_documents", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        columns = [self.text_field, *([self.id_field] if self.id_field else []), *self.keep.columns]
        return ["data"], list(dict.fromkeys(columns))

    def before_fork(self) -> None:
        prepare_fork(folds=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = texts_of_batch(task, self.text_field)
        keys, hashes, sizes = self.shingling.sketch(texts, self.banding, self.seed)
        ids = None if self.id_field is None else id_column(task, self.id_field)
        columns = {
            "doc": from_numbers(self.numbers.of_batch(task.task_id, task.num_items)),
            "low": from_numbers(np.ascontiguousarray(hashes[:, 0])),
            "high": from_numbers(np.ascontiguousarray(hashes[:, 1])),
            "worth": from_numbers(worth_of(task, texts.stops - texts.starts, self.keep)),
            "tie": from_numbers(np.zeros(len(sizes), np.uint64) if ids is None else hash_column(ids)),
            "size": from_numbers(sizes),
            **{f"band_{band}": from_numbers(own) for band, own in enumerate(keys)},
        }
        if ids is not None:
            columns["id"] = ids.cast(pa.string())
        if self.for_index:
            numbers = self.numbers.of_batch(task.task_id, task.num_items).tolist()
            columns.setdefault("id", from_texts([self.numbers.label(number) for number in numbers]))
            columns["shingles"] = from_lists(*self.shingling.sets(texts))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
