"""`RemoveById`: leave out the documents whose id is in a list."""

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.remove_documents import REASON
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class RemoveById(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop documents by the value of a column. Ids are compared as Arrow prints them: 7 is "7".

    `ids_path` is a Parquet file or a directory of them; each worker holds its column `ids_field` in memory. With
    `drop_id_field` the documents that stay lose the column.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    ids_path: str
    id_field: str
    ids_field: str = "id"
    drop_id_field: bool = False
    name: str = field(default="remove_duplicates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.id_field]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._ids = read_ids(self.ids_path, self.ids_field)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        import pyarrow.compute as pc

        lost = pc.is_in(task.column(self.id_field).cast(pa.string()), value_set=self._ids, skip_nulls=True)
        self.context.drop(task, lost, reason=REASON)
        kept = task.filter(pc.invert(lost))
        if not self.drop_id_field:
            return kept
        return kept.select([column for column in kept.get_columns() if column != self.id_field])


def read_ids(path: str, column: str) -> pa.Array:
    """Return the ids of one Parquet file, or of all in a directory, as strings."""
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[column])
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path}: expected Parquet with a column {column!r} of ids; got {error}") from error
    if not table.num_columns:
        raise ConfigError(f"{path}: expected a column {column!r} of ids; there is none")
    joined = table.column(0).cast(pa.string()).combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
