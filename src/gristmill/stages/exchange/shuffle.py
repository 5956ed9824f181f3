"""`Shuffle`: all rows of the dataset in random order, the same order for the same seed."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import xxhash

from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.exchange.exchange import Exchange
from gristmill.tasks import DocumentBatch, Task


@dataclass(eq=False)
class Shuffle(CompositeStage[DocumentBatch, DocumentBatch]):
    """Spread the rows over partitions at random, then permute each partition."""

    seed: int = 0
    num_partitions: int | None = None
    name: str = "shuffle"

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        exchange = Exchange(None, self.num_partitions, seed=self.seed)
        return [exchange, ShuffleRows(self.seed, name=self.name)]  # type: ignore[list-item]  # stages are invariant


@dataclass(eq=False)
class ShuffleRows(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Permute the rows of each batch."""

    rows_are_independent: ClassVar[bool] = False
    adds_only_declared_columns: ClassVar[bool] = True

    seed: int = 0
    name: str = field(default="shuffle", kw_only=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        own_seed = xxhash.xxh3_64_intdigest(f"{self.seed}:{task.task_id}".encode())
        return task.take(from_numbers(np.random.default_rng(own_seed).permutation(task.num_items)))
