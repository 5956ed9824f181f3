"""`VerifyCandidates`: behind an exchange by component, which documents are similar enough to one that is kept."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import Number, from_numbers, numbers_of, to_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.fork_preparation import prepare_fork
from gristmill.stages.deduplication.fuzzy.verification import verify
from gristmill.tasks import DocumentBatch

LOST, NEAR, CROWDED = np.int32(0), np.int32(1), np.int32(2)
NEAR_MISSES = 20


@dataclass(eq=False)
class VerifyCandidates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return rows of `doc`, `kept_doc`, `similarity`, `bands_shared` and `kind`.

    LOST      the document loses to `kept_doc`
    NEAR      it stays, but only just: `NEAR_MISSES` of each partition, the most similar ones
    CROWDED   it is the first of a bucket that was full, which `bands_shared` documents found so
    """

    rows_are_independent: ClassVar[bool] = False
    makes_new_documents: ClassVar[bool] = True

    threshold: float = 0.8
    containment: bool = False  # measure what share of a document is in the other, not what they share of both
    index_rows: str | None = None  # rows of the same form for documents of an index, in an Arrow file
    name: str = field(default="verify_candidates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["doc", "component", "rank", "keys", "shingles"]

    def before_fork(self) -> None:
        prepare_fork(folds=False)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        table = self._with_index(task.to_pyarrow()).combine_chunks()
        order = np.argsort(to_numbers(table.column("rank"), np.int64), kind="stable")
        table = table.take(from_numbers(order)).combine_chunks()
        doc = to_numbers(table.column("doc"), np.uint64)
        keys, _ = _flat(table.column("keys"), np.uint64)
        shingles, bounds = _flat(table.column("shingles"), np.uint32)
        num_docs = len(doc)
        keys = keys.reshape(num_docs, -1) if num_docs else keys.reshape(0, 1)
        buckets, num_buckets = _number_buckets(keys)
        fixed = to_numbers(table.column("rank"), np.int64) < 0
        made = verify(buckets, num_buckets, (shingles, bounds), fixed, self.threshold, containment=self.containment)
        lost = np.flatnonzero(made.lost_to >= 0)
        close = np.flatnonzero((made.nearest >= 0) & (made.lost_to < 0) & (made.similarity < self.threshold))
        close = close[np.argsort(-made.similarity[close], kind="stable")][:NEAR_MISSES]
        crowded = np.flatnonzero(made.full)
        firsts = _first_members(buckets, crowded)
        columns: dict[str, NDArray[np.number]] = {
            "doc": doc[np.concatenate([lost, close, firsts])],
            "kept_doc": doc[np.concatenate([made.lost_to[lost], made.nearest[close], firsts])],
            "similarity": np.concatenate([made.similarity[lost], made.similarity[close], np.zeros(len(firsts))]),
            "bands_shared": np.concatenate(
                [made.shared_bands[lost], made.shared_bands[close], made.full[crowded].astype(np.int32)]
            ),
            "kind": np.repeat([LOST, NEAR, CROWDED], [len(lost), len(close), len(firsts)]),
        }
        arrays = [from_numbers(array) for array in columns.values()]
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(arrays, names=list(columns)))

    def _with_index(self, table: pa.Table) -> pa.Table:
        """Add the documents of an index that belong to the components of this partition."""
        if self.index_rows is None:
            return table
        rows = pa.ipc.open_file(pa.memory_map(self.index_rows)).read_all()
        theirs, ours = (to_numbers(part.column("component"), np.int64) for part in (rows, table))
        own = np.isin(theirs, ours)
        return pa.concat_tables([table, rows.take(from_numbers(np.flatnonzero(own))).select(table.column_names)])


def _flat(column: pa.ChunkedArray, kind: type[Number]) -> tuple[NDArray[Number], NDArray[np.int64]]:
    """The values of a column of lists end to end, and where each begins."""
    lists = column.combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        lists = pa.concat_arrays(lists.chunks) if lists.num_chunks else pa.nulls(0, column.type)
    offsets = numbers_of(lists.offsets).astype(np.int64)
    first = int(offsets[0]) if len(offsets) else 0
    values = numbers_of(lists.values)[first : int(offsets[-1]) if len(offsets) else 0]
    return np.ascontiguousarray(values, kind), offsets - first


def _number_buckets(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], int]:
    """Number the buckets of all bands; the keys of different bands differ by construction."""
    distinct, numbered = np.unique(keys, return_inverse=True)
    return np.ascontiguousarray(numbered.reshape(keys.shape), np.int64), len(distinct)


def _first_members(buckets: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first document of each bucket."""
    if not len(wanted):
        return np.zeros(0, np.int64)
    flat, places = np.unique(buckets, return_index=True)
    firsts: NDArray[np.int64] = places[np.searchsorted(flat, wanted)] // buckets.shape[1]
    return firsts
