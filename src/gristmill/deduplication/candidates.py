"""Candidates for fuzzy duplicates: reading them again for their shingle sets, and which are similar enough."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.clusters import Clusters
from gristmill.deduplication.documents import DocumentNumbers
from gristmill.deduplication.fork_preparation import prepare_fork
from gristmill.deduplication.sketches import Shingling
from gristmill.kernels.arrow_arrays import Number, from_bools, from_lists, from_numbers, numbers_of, to_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import texts_of_batch
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

# `ShingleCandidates`: read documents again and take the shingle sets of those that may have a duplicate.

NOT_A_CANDIDATE = "no_candidate"


@dataclass(eq=False)
class ShingleCandidates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce candidates to `doc`, `component`, `rank`, `keys` (one per band) and `shingles`; leave out the others."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    shingling: Shingling
    banding: Banding
    text_field: str = "text"
    seed: int = 42
    name: str = field(default="shingle_candidates", kw_only=True)

    _clusters_path: str = field(default="", init=False, repr=False)  # of `Clusters`, in a directory that may be moved

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._clusters = Clusters.load(self._clusters_path)

    def before_fork(self) -> None:
        prepare_fork(folds=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self.numbers.of_batch(task.task_id, task.num_items)
        clusters = self._clusters
        chosen = clusters.candidates_in(numbers)
        doc = clusters.doc[clusters.positions[chosen]]
        rows = (doc - numbers[0]).astype(np.int64) if task.num_items else np.zeros(0, np.int64)
        mask = np.zeros(task.num_items, np.bool_)
        mask[rows] = True
        self.context.drop(task, from_bools(~mask), reason=NOT_A_CANDIDATE)
        texts = texts_of_batch(task, self.text_field).take(rows)
        keys, _, _ = self.shingling.sketch(texts, self.banding, self.seed)
        columns = {
            "doc": from_numbers(doc),
            "component": from_numbers(clusters.component[chosen]),
            "rank": from_numbers(clusters.rank[chosen]),
            "keys": _key_lists(keys),
            "shingles": from_lists(*self.shingling.sets(texts)),
        }
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def _key_lists(keys: np.ndarray[tuple[int, int], np.dtype[np.uint64]]) -> pa.Array:
    num_bands, num_docs = keys.shape
    return from_lists(np.ascontiguousarray(keys.T).ravel(), np.arange(num_docs + 1, dtype=np.int64) * num_bands)


# `verify`: which of several candidates are duplicates of which, by their shingle sets.

MAX_KEPT = 256  # documents a bucket takes in
MAX_COMPARED = 128  # documents one is compared with

_verify = CompiledKernel("dedup.verify", "verify")


class Verified(NamedTuple):
    """What is decided about D documents."""

    nearest: NDArray[np.int64]  # [D] the kept document each one is most similar to, or -1
    lost_to: NDArray[np.int64]  # [D] the nearest where it is similar enough, else -1
    similarity: NDArray[np.float64]  # [D] to the nearest
    shared_bands: NDArray[np.int32]  # [D] with the nearest
    full: NDArray[np.int64]  # [buckets] how many kept documents found a bucket full


def verify(
    buckets: NDArray[np.int64],
    num_buckets: int,
    sets: tuple[NDArray[np.uint32], NDArray[np.int64]],
    fixed: NDArray[np.bool_],
    threshold: float,
    *,
    containment: bool = False,
    max_kept: int = MAX_KEPT,
    max_compared: int = MAX_COMPARED,
) -> Verified:
    """Decide about documents given best first; `buckets` is [D, B], `fixed` marks those that stay in any case.

    With `containment`, what counts is the share of a document's shingles that the kept one has.
    """
    num_docs, num_bands = buckets.shape
    made = Verified(
        np.empty(num_docs, np.int64),
        np.empty(num_docs, np.int64),
        np.zeros(num_docs),
        np.zeros(num_docs, np.int32),
        np.zeros(num_buckets, np.int64),
    )
    head, before = np.full(num_buckets, -1), np.full(num_docs * num_bands, -1)
    kept_in, met = np.zeros(num_buckets, np.int32), np.zeros(num_docs, np.int32)
    _verify(
        *(buckets, num_docs, num_bands, *sets, fixed.view(np.uint8)),
        *(np.array([threshold], np.float64), int(containment), max_kept, max_compared),
        *(head, before, kept_in, met, np.empty(num_docs, np.int64)),
        *made,
    )
    return made


# `VerifyCandidates`, behind an exchange by component: which documents are similar enough to one that is kept.

LOST, NEAR, CROWDED = np.int32(0), np.int32(1), np.int32(2)
NEAR_MISSES = 20


@dataclass(eq=False)
class VerifyCandidates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return rows of `doc`, `kept_doc`, `similarity`, `bands_shared` and `kind`.

    LOST      the document loses to `kept_doc`
    NEAR      it stays, but only just: `NEAR_MISSES` of each partition, the most similar ones
    CROWDED   it is the first of a full bucket; `bands_shared` says how many documents found it full
    """

    rows_are_independent: ClassVar[bool] = False
    makes_new_documents: ClassVar[bool] = True

    threshold: float = 0.8
    containment: bool = False  # measure what share of a document is in the other, not what share of both is common
    name: str = field(default="verify_candidates", kw_only=True)

    _index_rows: str | None = field(default=None, init=False, repr=False)  # a file of such rows for those of an index

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
        if self._index_rows is None:
            return table
        rows = pa.ipc.open_file(pa.memory_map(self._index_rows)).read_all()
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


def write_index_rows(clusters: Clusters, files: Sequence[str], banding: Banding, path: Path) -> str | None:
    """Write the candidates that are in the index; return the file, or None if there are none."""
    own = clusters.positions < clusters.num_indexed
    if not own.any():
        return None
    positions, component, rank = clusters.positions[own], clusters.component[own], clusters.rank[own]
    tables = []
    first = 0
    for file in files:
        rows = pa.ipc.open_file(pa.memory_map(file)).read_all()
        start, end = np.searchsorted(positions, [first, first + rows.num_rows])
        chosen = rows.take(from_numbers(positions[start:end].astype(np.int64) - first)).combine_chunks()
        keys = np.stack(
            [to_numbers(chosen.column(f"band_{band}"), np.uint64) for band in range(banding.num_bands)], axis=1
        )
        bounds = np.arange(end - start + 1, dtype=np.int64) * banding.num_bands
        columns = {
            "doc": from_numbers(clusters.doc[positions[start:end]]),
            "component": from_numbers(component[start:end]),
            "rank": from_numbers(rank[start:end]),
            "keys": from_lists(np.ascontiguousarray(keys).ravel(), bounds),
            "shingles": chosen.column("shingles"),
        }
        tables.append(pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        first += rows.num_rows
    temporary = path.with_name(f".{path.name}.tmp")
    with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    temporary.replace(path)
    return str(path)
