"""`WritePartitions`: the first half of an exchange. A batch becomes one Arrow file, a record batch per partition.

One file per batch, not one for each batch and partition: a thousand batches and a thousand partitions are a thousand
files. The files belong to the run directory and are committed by the ledger like any output.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import xxhash

from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.kernels.row_hash import hash_rows, mix
from gristmill.metrics.snapshot import SPILLED_BYTES
from gristmill.stages.base import ProcessingStage
from gristmill.stages.io.files import write_output
from gristmill.storage.atomic_write import make_directory
from gristmill.tasks import FileGroupTask, TableBatch
from gristmill.tasks.serialization import HEADER_KEY, dump_batch


@dataclass(eq=False)
class WritePartitions(ProcessingStage[TableBatch, FileGroupTask]):
    """Write each batch's rows, ordered by partition, to a file below `directory`, which is set by the planner."""

    keys: list[str]
    num_partitions: int
    seed: int = 0
    name: str = field(default="exchange", kw_only=True)

    # Not a parameter: the same run in a moved directory is the same run.
    _directory: str = field(default="", init=False, repr=False)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.keys)

    def output_directory(self) -> str:
        return self._directory

    def prepare_output(self, *, resuming: bool) -> list[str]:
        make_directory(self._directory)
        return []

    def process(self, task: TableBatch) -> FileGroupTask:
        if not task.num_items:
            return FileGroupTask(task.dataset_name, [])
        ordered, bounds = task, np.array([0, task.num_items])
        if self.num_partitions > 1:
            partition = self._partitions(task)
            order = np.argsort(partition, kind="stable")
            bounds = np.searchsorted(partition[order], np.arange(self.num_partitions + 1))
            ordered = task.take(from_numbers(order))
        header, table = dump_batch(ordered)
        sink = pa.BufferOutputStream()
        schema = table.schema.with_metadata({**(table.schema.metadata or {}), HEADER_KEY: header})
        rows = table.combine_chunks().replace_schema_metadata(schema.metadata).to_batches()[0]
        with pa.ipc.new_file(sink, schema) as writer:
            for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                writer.write_batch(rows.slice(start, end - start))
        content = [memoryview(sink.getvalue())]
        self.context.count(SPILLED_BYTES, len(content[0]))
        return write_output(self.context, f"{self._directory}/{task.task_id}.arrow", content, task)

    def _partitions(self, task: TableBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return which partition each row belongs to."""
        if self.keys:
            hashes = hash_rows([task.column(name) for name in self.keys], seed=self.seed)
        else:
            own_seed = np.uint64(xxhash.xxh3_64_intdigest(f"{self.seed}:{task.task_id}".encode()))
            hashes = mix(own_seed ^ mix(np.arange(task.num_items, dtype=np.uint64)))
        return (hashes % np.uint64(self.num_partitions)).astype(np.int64)
