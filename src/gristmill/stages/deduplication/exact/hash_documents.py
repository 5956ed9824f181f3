"""`HashDocuments`: of each document its number, its hash, and what decides whether it stays."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.kernels.row_hash import hash_column
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.stages.deduplication.document_worth import worth_of
from gristmill.stages.deduplication.fork_preparation import prepare_fork
from gristmill.stages.deduplication.id_column import id_column
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.stages.deduplication.text_hash import hash_texts
from gristmill.stages.deduplication.token_hash import hash_tokens
from gristmill.stages.text.text_column import TextColumn, text_pieces
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

EMPTY_REASON = "nothing_to_compare"


@dataclass(eq=False)
class HashDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to `low`, `high` (the hash), `doc` (the number), `worth`, `tie` and, with `id_field`, `id`.

    With `normalize`, texts that differ in case, accents, punctuation and white space only hash alike. A document whose
    column is null or empty equals no other: it does not come out. With `for_index` every row has an `id`.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    text_field: str = "text"
    id_field: str | None = None
    keep: KeepPolicy = field(default_factory=KeepPolicy)
    normalize: bool = False
    for_index: bool = False
    name: str = field(default="hash_documents", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        columns = [self.text_field, *([self.id_field] if self.id_field else []), *self.keep.columns]
        return ["data"], list(dict.fromkeys(columns))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["low", "high", "doc", "worth", "tie"]

    def before_fork(self) -> None:
        prepare_fork(folds=self.normalize)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        hashes, lengths = self._hash_all(task)
        low = np.ascontiguousarray(hashes[:, 0])
        ids = None if self.id_field is None else id_column(task, self.id_field)
        by_order = ids is None or self.keep.kind == "first"
        columns = {
            "low": from_numbers(low),
            "high": from_numbers(np.ascontiguousarray(hashes[:, 1])),
            "doc": from_numbers(self.numbers.of_batch(task.task_id, task.num_items)),
            "worth": from_numbers(worth_of(task, lengths, self.keep)),
            "tie": from_numbers(np.zeros_like(low) if by_order else hash_column(ids)),
        }
        if ids is not None:
            columns["id"] = ids.cast(pa.string())
        elif self.for_index:
            numbers = self.numbers.of_batch(task.task_id, task.num_items).tolist()
            columns["id"] = from_texts([self.numbers.label(number) for number in numbers])
        rows = DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        nothing = lengths == 0
        if self.normalize:
            nothing |= (hashes == 0).all(axis=1)
        self.context.drop(task, from_bools(nothing), reason=EMPTY_REASON)
        rows.task_id = task.task_id
        return rows.filter(from_bools(~nothing))

    def _hash_all(self, task: DocumentBatch) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return uint64[N, 2] and int64[N], the hash and the bytes of each text; a null has none."""
        hashes, lengths = np.empty((task.num_items, 2), np.uint64), np.empty(task.num_items, np.int64)
        first = 0
        for texts in text_pieces(task, self.text_field):
            rows = slice(first, first + len(texts))
            hashes[rows], lengths[rows] = self._hash(texts), texts.stops - texts.starts
            first += len(texts)
        return hashes, lengths

    def _hash(self, texts: TextColumn) -> NDArray[np.uint64]:
        return hash_tokens(texts) if self.normalize else hash_texts(texts)
