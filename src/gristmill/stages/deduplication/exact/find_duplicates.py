"""`FindDuplicates`: behind an exchange by hash, which documents lose to which."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.document_numbers import OF_INDEX
from gristmill.stages.deduplication.exact.hash_index import find_in_index
from gristmill.stages.deduplication.fork_preparation import prepare_fork
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class FindDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Of each group with equal `low` and `high` keep one; return the others as `doc` with `kept_doc`.

    A group of fewer than `min_count` stays whole. `id`, and `part` for pieces of documents, come along if there.
    With `index`, a directory of `write_index`, what is in it already loses to it.
    """

    rows_are_independent: ClassVar[bool] = False
    makes_new_documents: ClassVar[bool] = True

    min_count: int = 2
    index: str | None = None
    name: str = field(default="find_duplicates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["low", "high", "doc", "worth", "tie"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["kept_doc"]

    def before_fork(self) -> None:
        prepare_fork(folds=False)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        table = task.to_pyarrow()
        low, high, doc = (to_numbers(table.column(name), np.uint64) for name in ("low", "high", "doc"))
        has_parts = "part" in table.column_names
        part = to_numbers(table.column("part"), np.int32) if has_parts else np.zeros(len(doc), np.int32)
        kept = self._winners(table, part)
        indexed = np.full(len(doc), -1, np.int64) if self.index is None else find_in_index(self.index, low, high)
        losers = np.flatnonzero((kept != np.arange(len(doc))) | (indexed >= 0))
        losers = losers[np.lexsort((part[losers], doc[losers]))]
        winners = kept[losers]
        of_index = indexed[losers].astype(np.uint64) | np.uint64(OF_INDEX)
        kept_doc = np.where(indexed[losers] >= 0, of_index, doc[winners])
        columns = {"doc": from_numbers(doc[losers]), "kept_doc": from_numbers(kept_doc)}
        for column in [name for name in ("id", "part") if name in table.column_names]:
            columns[column] = table.column(column).take(from_numbers(losers))
            columns[f"kept_{column}"] = table.column(column).take(from_numbers(winners))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))

    def _winners(self, table: pa.Table, part: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return int64[N], the row that each row loses to, or the row itself."""
        kept = np.arange(table.num_rows)
        rows = _not_alone(to_numbers(table.column("low"), np.uint64))
        low, high, doc, tie = (
            to_numbers(table.column(name), np.uint64)[rows] for name in ("low", "high", "doc", "tie")
        )
        worth = to_numbers(table.column("worth"), np.float64)[rows]
        order = np.lexsort((part[rows], doc, tie, -worth, high, low))
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)]))
        sizes = np.diff(np.append(starts, len(order))) if len(order) else np.zeros(0, np.int64)
        is_removed = np.repeat(sizes >= self.min_count, sizes)
        first = order[np.repeat(starts[: len(sizes)], sizes)]
        kept[rows[order[is_removed]]] = rows[first[is_removed]]
        return kept


def _not_alone(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the positions of values that occur more than once, rising: sorting by all columns is for them alone."""
    order = np.argsort(values)
    same = values[order[1:]] == values[order[:-1]]
    is_pair = np.concatenate([[False], same]) | np.concatenate([same, [False]])
    return np.sort(order[is_pair[: len(order)]])
