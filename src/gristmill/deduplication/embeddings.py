"""Duplicates by meaning: embeddings, clusters, and which documents are too close to others."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.documents import DOCUMENT_NUMBER
from gristmill.errors import ConfigError, StageError
from gristmill.kernels.arrow_arrays import from_bools, from_lists, from_numbers, is_null, to_numbers
from gristmill.kernels.kmeans import assign, find_similar, normalize
from gristmill.kernels.row_hash import hash_column, mix
from gristmill.stages.base import ProcessingStage
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

# `RankingStrategy`: which document of a cluster to keep, by columns of the documents.


@dataclass(frozen=True)
class RankingStrategy:
    """Prefer documents by `metadata_cols`, the first one first: low values with `ascending`, else high ones."""

    metadata_cols: Sequence[str]
    ascending: bool | Sequence[bool] = True
    strategy: Literal["sort"] = "sort"

    def __post_init__(self) -> None:
        if self.strategy != "sort":
            raise ConfigError(
                f"RankingStrategy: expected strategy 'sort'; got {self.strategy!r} (which_to_keep='random' is random)"
            )
        if not isinstance(self.ascending, bool) and len(self.ascending) != len(self.metadata_cols):
            raise ConfigError(
                f"RankingStrategy: expected ascending to be one bool, or one for each of {list(self.metadata_cols)}; "
                f"got {self.ascending!r}"
            )

    @classmethod
    def metadata_based(
        cls, metadata_cols: Sequence[str], *, ascending: bool | Sequence[bool] = True
    ) -> "RankingStrategy":
        """Return a strategy that sorts by columns."""
        return cls(tuple(metadata_cols), ascending)

    @property
    def directions(self) -> list[tuple[str, bool]]:
        """Each column, and whether low values are better."""
        ascending = [self.ascending] * len(self.metadata_cols) if isinstance(self.ascending, bool) else self.ascending
        return list(zip(self.metadata_cols, ascending, strict=True))


# `ExtractEmbeddings`: each document's number, id and embedding, scaled to length one.

NO_EMBEDDING, NOT_FINITE = "no_embedding", "not_finite"


@dataclass(eq=False)
class ExtractEmbeddings(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents that have a number to `doc`, `id`, `tie`, `vector` and a `by_` column for each metadata field.

    A document whose embedding is null, or holds something that is not a finite number, has no duplicates.
    """

    embedding_field: str = "embeddings"
    id_field: str | None = "id"
    metadata_fields: Sequence[str] = ()
    name: str = field(default="extract_embeddings", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        columns = [DOCUMENT_NUMBER, self.embedding_field, *([self.id_field] if self.id_field else [])]
        return ["data"], list(dict.fromkeys([*columns, *self.metadata_fields]))

    def process(self, task: DocumentBatch) -> DocumentBatch:
        column = task.column(self.embedding_field)
        there = ~is_null(column)
        vectors = to_matrix(column.filter(from_bools(there)), who=self.name)
        is_finite = np.isfinite(vectors).all(axis=1)
        not_finite = there.copy()
        not_finite[there] = ~is_finite
        self.context.drop(task, from_bools(~there), reason=NO_EMBEDDING)
        self.context.drop(task, from_bools(not_finite), reason=NOT_FINITE)
        there, vectors = there & ~not_finite, normalize(vectors[is_finite])
        numbers = to_numbers(task.column(DOCUMENT_NUMBER), np.uint64)[there]
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
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))


def to_matrix(column: pa.ChunkedArray, *, who: str) -> NDArray[np.float32]:
    """Return float32[N, dim] of a column of lists of one length."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return np.zeros((0, 1), np.float32)
    flat = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]).astype(np.float32)
    lengths = np.unique(np.concatenate([_lengths(chunk) for chunk in chunks]))
    if len(lengths) > 1:
        some = ", ".join(map(str, lengths[:5].tolist()))
        raise StageError(f"{who}: expected embeddings of one length in a batch; got lengths of {some}")
    return flat.reshape(len(column), -1)


def _lengths(lists: pa.Array) -> NDArray[np.int64]:
    """How long the lists of an array without nulls are."""
    if pa.types.is_fixed_size_list(lists.type):
        return np.array([lists.type.list_size], np.int64)
    return np.diff(to_numbers(pa.chunked_array([lists.offsets]), np.int64))


Which = Literal["hard", "easy", "random"]


@dataclass(frozen=True)
class Clustering:
    """How embeddings are clustered. Another clustering finds other duplicates, so it is part of the plan."""

    n_clusters: int
    max_iter: int = 300
    tol: float = 1e-4
    seed: int = 42
    fit_data_fraction: float | None = None

    def file_name(self) -> str:
        """Where the centroids are kept: those left by a run with other settings are not mistaken for them."""
        settings = json.dumps(vars(self), sort_keys=True).encode()
        return f"centroids-{hashlib.blake2b(settings, digest_size=6).hexdigest()}.npy"


@dataclass(eq=False)
class AssignClusters(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Add `cluster` and `centrality`, the cosine to its centroid."""

    clustering: Clustering
    name: str = field(default="assign_clusters", kw_only=True)

    _directory: str = field(default="", init=False, repr=False)  # of the centroids; it may be moved

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["vector"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["cluster", "centrality"]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._centroids = np.load(f"{self._directory}/{self.clustering.file_name()}")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        vectors = to_matrix(task.column("vector"), who=self.name)
        cluster, cosine = assign(vectors, self._centroids) if task.num_items else (np.zeros(0, np.int64), np.zeros(0))
        added = task.with_column("cluster", from_numbers(cluster))
        # The last bits depend on how many vectors were multiplied together. Rounded, equal ones tie, and go by id.
        return added.with_column("centrality", from_numbers(np.round(cosine.astype(np.float64), 5)))


@dataclass(eq=False)
class FindSemanticDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return rows of `doc`, `kept_doc` and `similarity` for documents whose cosine to a kept one is at least 1 - eps.

    With `ranking` its columns decide which document is kept. Otherwise those far from the centroid ("hard"), near to it
    ("easy") or any ("random") are kept first. Ties go by id.
    """

    rows_are_independent: ClassVar[bool] = False

    eps: float
    which_to_keep: Which = "hard"
    block: int = 1024
    ranking: RankingStrategy | None = None
    name: str = field(default="find_semantic_duplicates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["doc", "tie", "vector", "cluster", "centrality"]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        table = task.to_pyarrow()
        doc, tie = (to_numbers(table.column(name), np.uint64) for name in ("doc", "tie"))
        cluster = to_numbers(table.column("cluster"), np.int64)
        centrality = to_numbers(table.column("centrality"), np.float64)
        first = {"hard": centrality, "easy": -centrality, "random": mix(tie ^ doc).astype(np.float64)}
        preference = [first[self.which_to_keep]] if self.ranking is None else self._ranked(table, self.ranking)
        order = np.lexsort((doc, tie, *preference, cluster))
        vectors = to_matrix(table.column("vector"), who=self.name)
        losers, winners, similarity = [], [], []
        for rows in np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1):
            lost_to, cosine = find_similar(vectors[rows], 1 - self.eps, block=self.block)
            lost = np.flatnonzero(lost_to >= 0)
            losers.append(rows[lost])
            winners.append(rows[lost_to[lost]])
            similarity.append(cosine[lost].astype(np.float64))
        lost, kept = np.concatenate(losers), np.concatenate(winners)
        arrays = [from_numbers(doc[lost]), from_numbers(doc[kept]), from_numbers(np.concatenate(similarity))]
        names = ["doc", "kept_doc", "similarity"]
        for name in ("id",) if "id" in table.column_names else ():
            arrays += [table.column(name).take(from_numbers(rows)) for rows in (lost, kept)]
            names += [name, f"kept_{name}"]
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(arrays, names=names))

    @staticmethod
    def _ranked(table: pa.Table, ranking: RankingStrategy) -> list[NDArray[np.float64]]:
        """The columns that decide, most important last, as `lexsort` wants them; a null is the worst."""
        keys = []
        for name, ascending in reversed(ranking.directions):
            values = table.column(f"by_{name}").to_numpy()
            keys.append(np.nan_to_num(values if ascending else -values, nan=np.inf))
        return keys
