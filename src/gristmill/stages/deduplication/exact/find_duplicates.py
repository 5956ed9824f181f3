"""`FindDuplicates`: behind an exchange by hash, which documents lose to which."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class FindDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Of each group with equal `low` and `high` keep one; return the others as `doc` with `kept_doc`.

    A group of fewer than `min_count` stays whole. `id`, and `part` for pieces of documents, come along if there.
    """

    rows_are_independent: ClassVar[bool] = False

    min_count: int = 2
    name: str = field(default="find_duplicates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["low", "high", "doc", "worth", "tie"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["kept_doc"]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        table = task.to_pyarrow()
        low, high, doc, tie = (to_numbers(table.column(name), np.uint64) for name in ("low", "high", "doc", "tie"))
        worth = to_numbers(table.column("worth"), np.float64)
        has_parts = "part" in table.column_names
        part = to_numbers(table.column("part"), np.int32) if has_parts else np.zeros(len(doc), np.int32)
        order = np.lexsort((part, doc, tie, -worth, high, low))
        if not len(order):
            return DocumentBatch(task.dataset_name, table)
        same = (low[order[1:]] == low[order[:-1]]) & (high[order[1:]] == high[order[:-1]])
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        sizes = np.diff(np.append(starts, len(order)))
        kept = order[np.repeat(starts, sizes)]
        removed = np.concatenate([[False], same]) & (np.repeat(sizes, sizes) >= self.min_count)
        losers, winners = order[removed], kept[removed]
        in_order = np.lexsort((part[losers], doc[losers]))
        losers, winners = losers[in_order], winners[in_order]
        columns = {"doc": from_numbers(doc[losers]), "kept_doc": from_numbers(doc[winners])}
        for column in [name for name in ("id", "part") if name in table.column_names]:
            columns[column] = table.column(column).take(from_numbers(losers))
            columns[f"kept_{column}"] = table.column(column).take(from_numbers(winners))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
