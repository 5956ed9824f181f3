"""`Exchange`: the place in a pipeline where rows with the same key meet.

It is a mark: the planner cuts the pipeline here, so that what stands before is done when what stands behind begins.
How rows are written and read again is in `write_partitions` and `read_partition`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gristmill.errors import ConfigError
from gristmill.stages.base import AnyStage, ProcessingStage
from gristmill.stages.exchange.read_partition import ReadPartition, partition_tasks
from gristmill.stages.exchange.write_partitions import WritePartitions
from gristmill.tasks import DocumentBatch, FileGroupTask

PARTITION_BYTES = 64 * 1024**2  # of the pipeline's input for each partition, if no number is given
MAX_PARTITIONS = 4096


@dataclass(eq=False)
class Exchange(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Bring rows with equal values in the columns `key` into the same partition.

    The stages behind it get one batch for each of the `num_partitions` partitions, when all before it is done. Its rows
    come ordered by source partition and position, so the result does not depend on the workers. Without a key, rows
    are spread evenly: at random, but the same way for the same `seed`. A partition has to fit in memory; by default
    there is one for each 64 MiB of input.
    """

    adds_only_declared_columns: ClassVar[bool] = True
    is_exchange: ClassVar[bool] = True

    key: str | list[str] | None = None
    num_partitions: int | None = None
    seed: int = 0
    name: str = "exchange"

    def __post_init__(self) -> None:
        given = self.num_partitions
        if given is not None and not 1 <= given <= MAX_PARTITIONS:
            raise ConfigError(f"{self.name}: expected num_partitions from 1 to {MAX_PARTITIONS}; got {given!r}")
        if self.key is not None and not self.keys:
            raise ConfigError(f"{self.name}: expected key to name at least one column, or to be None; got {self.key!r}")

    @property
    def keys(self) -> list[str]:
        """The columns of the key."""
        return [] if self.key is None else [self.key] if isinstance(self.key, str) else list(self.key)

    def partition_count(self, input_bytes: int) -> int:
        """Return how many partitions there are: a function of the input, never of the machine."""
        return self.num_partitions or min(MAX_PARTITIONS, max(1, -(-input_bytes // PARTITION_BYTES)))

    # What the planner puts in its place

    def _first_half(self, input_bytes: int) -> WritePartitions:
        """Return the stage that ends the segment before it."""
        return WritePartitions(self.keys, self.partition_count(input_bytes), self.seed, name=self.stage_name())

    def _second_half(self) -> AnyStage:
        """Return the stage that begins the segment behind it."""
        return ReadPartition(name=f"{self.stage_name()}_read")

    def _tasks_behind(
        self, directory: str, number: int, before: Sequence[str], input_bytes: int
    ) -> Sequence[FileGroupTask]:
        """Return what the segment behind it begins with, given the names of the source partitions before it."""
        return partition_tasks(directory, number, self.partition_count(input_bytes), total_bytes=input_bytes)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self.keys

    def process(self, task: DocumentBatch) -> DocumentBatch:
        """Return the batch: outside of a pipeline, a batch is all there is."""
        return task
