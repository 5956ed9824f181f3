"""`AssignClusters` and `FindSemanticDuplicates`: an embedding's cluster, and who is too close to whom within it."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.kmeans import assign, find_similar
from gristmill.kernels.row_hash import mix
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.embeddings.extract_embeddings import to_matrix
from gristmill.stages.deduplication.embeddings.ranking_strategy import RankingStrategy
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch

Which = Literal["hard", "easy", "random"]


@dataclass(eq=False)
class AssignClusters(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Add `cluster` and `centrality`, the cosine to its centroid. `centroids` is a file of numpy's."""

    centroids: str
    name: str = field(default="assign_clusters", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["vector"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["cluster", "centrality"]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._centroids = np.load(self.centroids)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        vectors = to_matrix(task.column("vector"), who=self.name)
        cluster, cosine = assign(vectors, self._centroids) if task.num_items else (np.zeros(0, np.int64), np.zeros(0))
        added = task.with_column("cluster", from_numbers(cluster))
        return added.with_column("centrality", from_numbers(cosine.astype(np.float64)))


@dataclass(eq=False)
class FindSemanticDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return rows of `doc`, `kept_doc` and `similarity` for documents whose cosine to a kept one is at least 1 - eps.

    With `ranking` its columns decide who is kept. Otherwise kept first are those far from the centroid ("hard"), near
    to it ("easy"), or any ("random"). Ties go by id.
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
