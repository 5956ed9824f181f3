"""`ExtractEmbeddings`: of each document its number, id and embedding at length one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_bools, from_lists, from_numbers, is_null
from gristmill.kernels.kmeans import normalize
from gristmill.kernels.row_hash import hash_column
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import DocumentNumbers
from gristmill.tasks import DocumentBatch

NO_EMBEDDING = "no_embedding"


@dataclass(eq=False)
class ExtractEmbeddings(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to `doc`, `id`, `tie`, `vector` and a `by_` column for each metadata field.

    A document whose embedding is null has no duplicates.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position

    numbers: DocumentNumbers
    embedding_field: str = "embeddings"
    id_field: str | None = "id"
    metadata_fields: Sequence[str] = ()
    name: str = field(default="extract_embeddings", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        columns = [self.embedding_field, *([self.id_field] if self.id_field else []), *self.metadata_fields]
        return ["data"], list(dict.fromkeys(columns))

    def process(self, task: DocumentBatch) -> DocumentBatch:
        column = task.column(self.embedding_field)
        there = ~is_null(column)
        vectors = normalize(to_matrix(column.filter(from_bools(there)), who=self.name))
        numbers = self.numbers.of_batch(task.task_id, task.num_items)[there]
        bounds = np.arange(len(vectors) + 1, dtype=np.int64) * (vectors.shape[1] if len(vectors) else 0)
        columns = {
            "doc": from_numbers(numbers),
            "tie": from_numbers(np.zeros(len(numbers), np.uint64)),
            "vector": from_lists(np.ascontiguousarray(vectors).ravel(), bounds),
        }
        if self.id_field is not None:
            ids = task.column(self.id_field).filter(from_bools(there))
            columns |= {"id": ids.cast(pa.string()), "tie": from_numbers(hash_column(ids))}
        for name in self.metadata_fields:
            columns[f"by_{name}"] = task.column(name).filter(from_bools(there)).cast(pa.float64())
        self.context.drop(task, from_bools(~there), reason=NO_EMBEDDING)
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def to_matrix(column: pa.ChunkedArray, *, who: str) -> NDArray[np.float32]:
    """Return float32[N, dim] of a column of lists of one length."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return np.zeros((0, 1), np.float32)
    flat = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]).astype(np.float32)
    num_rows = len(column)
    if len(flat) % num_rows or len({len(value) for value in column.slice(0, 100).to_pylist()}) > 1:
        raise StageError(f"{who}: expected embeddings of one length; got {len(flat)} numbers in {num_rows} rows")
    return flat.reshape(num_rows, -1)
