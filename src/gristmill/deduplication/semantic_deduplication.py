"""`SemanticDeduplication`: of documents whose embeddings are nearly the same one stays.

extract embeddings ─▶ k-means on a sample ─▶ assign ─▶ exchange by cluster ─▶ cosine within clusters
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gristmill.deduplication.deduplication_stage import DeduplicationStage
from gristmill.deduplication.documents import NumberDocuments
from gristmill.deduplication.embeddings import (
    AssignClusters,
    Clustering,
    ExtractEmbeddings,
    FindSemanticDuplicates,
    RankingStrategy,
    Which,
    to_matrix,
)
from gristmill.deduplication.files_between import (
    count_rows,
    in_order_of,
    is_sealed_array,
    read_rows,
    write_sealed_array,
)
from gristmill.deduplication.findings import Findings
from gristmill.deduplication.report import Duplicates, no_duplicates
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.kmeans import fit
from gristmill.runs.searches import StepRows
from gristmill.stages.base import AnyStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.exchange.barrier import ReadBack

SAMPLE_ROWS = 50_000  # embeddings k-means sees at most
MAX_PARTITIONS = 256
WHICH = ("hard", "easy", "random")
STEP = "extract"


def check_settings(who: str, eps: float | None, which_to_keep: str, distance_metric: str, n_clusters: int) -> float:
    """Return eps if all settings make sense; else raise ConfigError, naming the one that does not."""
    if eps is None or not 0 <= eps < 1:
        raise ConfigError(f"{who}: expected eps in [0, 1), as in cosine ≥ 1 - eps; got {eps!r}")
    if which_to_keep not in WHICH:
        raise ConfigError(f"{who}: expected which_to_keep to be one of {WHICH}; got {which_to_keep!r}")
    if distance_metric != "cosine":
        raise ConfigError(f"{who}: expected distance_metric 'cosine'; got {distance_metric!r}")
    if n_clusters < 1:
        raise ConfigError(f"{who}: expected n_clusters ≥ 1; got {n_clusters!r}")
    return eps


@dataclass(eq=False)
class SemanticDeduplication(DeduplicationStage):
    """Drop documents whose embedding's cosine to that of one of their cluster that stays is at least 1 - `eps`.

    They are dropped as `semantic_duplicate`. `embedding_field` is a column of lists of numbers. `which_to_keep` prefers
    documents far from the centroid of their cluster ("hard"), near to it ("easy") or any ("random"); with
    `ranking_strategy` columns decide. Documents without an embedding are kept. All embeddings of a cluster must fit in
    memory; they are compared `pairwise_batch_size` at a time. k-means sees at most 50,000 embeddings, or
    `fit_data_fraction` of them.

    `duplicates.parquet`, where a document is named by its `id_field` or its place, and `report.json`, which shows
    `text_field`, are left in the run directory, or below `report_path`. The report names files that lose more than
    `alarm_share` of their documents.
    """

    reason: ClassVar[str] = "semantic_duplicate"
    TELLING: ClassVar[frozenset[str]] = DeduplicationStage.TELLING | {"text_field"}

    n_clusters: int
    eps: float = 0.01
    embedding_field: str = "embeddings"
    which_to_keep: Which = "hard"
    id_field: str | None = None
    _: KW_ONLY
    ranking_strategy: RankingStrategy | None = None
    max_iter: int = 300
    tol: float = 1e-4
    random_state: int = 42
    fit_data_fraction: float | None = None
    pairwise_batch_size: int = 1024
    text_field: str = "text"
    name: str = "semantic_deduplication"

    # For documents without embeddings: the stages that add them, the columns those read, and how many rows at a time
    _embedding: Sequence[AnyStage] = field(default=(), init=False, repr=False)
    _embedded: Sequence[str] = field(default=(), init=False, repr=False)
    _rows_at_once: int | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self.name, self.eps, self.which_to_keep, "cosine", self.n_clusters)

    def _bound(self) -> str:
        return f"cosine < {1 - self.eps:g}"

    def _compared(self) -> list[str]:
        given = self._embedded if self._embedding else [self.embedding_field]
        ids = [] if self.id_field is None else [self.id_field]
        return list(dict.fromkeys([*given, *ids, *self._ranked_by]))

    def get_config(self) -> dict[str, object]:
        return super().get_config() | {"embedding": [(type(s), s.get_config()) for s in self._embedding]}

    @property
    def _ranked_by(self) -> tuple[str, ...]:
        """The columns of the documents that decide which one is kept."""
        return () if self.ranking_strategy is None else tuple(self.ranking_strategy.metadata_cols)

    def _find(self, documents: SearchedDocuments) -> Findings:
        """Cluster the embeddings, and compare those of a cluster."""
        extracting = ExtractEmbeddings(self.embedding_field, self.id_field, self._ranked_by)
        numbering = NumberDocuments(documents.numbers, self._rows_at_once)
        stages = [*documents.reading(self._compared()), numbering, *self._embedding, extracting]
        extracted = documents.search.run(STEP, stages)
        found = self._compare(documents, extracted) if count_rows(extracted.files) else no_duplicates()
        counting = extracting if not self._embedding else numbering  # a model may fail on some
        return Findings(found, self.text_field, (STEP, counting.stage_name()))

    def _compare(self, documents: SearchedDocuments, extracted: StepRows) -> Duplicates:
        clustering = Clustering(self.n_clusters, self.max_iter, self.tol, self.random_state, self.fit_data_fraction)
        centroids = documents.directory / clustering.file_name()
        if not is_sealed_array(centroids):
            _fit(clustering, extracted.files, centroids)
        assigning = AssignClusters(clustering)
        assigning._directory = str(documents.directory)
        keeping = self.which_to_keep, self.pairwise_batch_size, self.ranking_strategy
        stages = [
            ReadBack(),
            assigning,
            Exchange("cluster", min(MAX_PARTITIONS, self.n_clusters)),
            FindSemanticDuplicates(self.eps, *keeping),
        ]
        return self._found(documents.search.run("pairs", stages, extracted.partitions).files)

    def _found(self, files: Sequence[str]) -> Duplicates:
        has_ids = self.id_field is not None
        rows = read_rows(files, ["doc", "kept_doc", "similarity", *(["id", "kept_id"] if has_ids else [])])
        if not rows.num_rows:
            return no_duplicates()
        rows = in_order_of(rows, "doc")
        doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
        cosine = to_numbers(rows.column("similarity"), np.float64)
        duplicates = Duplicates(doc, kept, cosine, np.zeros(len(doc), np.int32))
        if has_ids:
            duplicates.ids, duplicates.kept_ids = (rows.column(name).combine_chunks() for name in ("id", "kept_id"))
        return duplicates


def _fit(clustering: Clustering, files: Sequence[str], path: Path) -> None:
    sample = _sample(files, clustering.fit_data_fraction or 1.0)
    count, seed = clustering.n_clusters, clustering.seed
    write_sealed_array(path, fit(sample, count, seed=seed, max_iter=clustering.max_iter, tol=clustering.tol))


def _sample(files: Sequence[str], share: float) -> NDArray[np.float32]:
    """Every n-th embedding, counted over all files, so the sample is the same each time."""
    total = count_rows(files)
    most = max(1, min(SAMPLE_ROWS, int(total * share)))
    step = -(-total // most)
    parts, next_row = [], 0
    for file in files:
        vectors = read_rows([file], ["vector"]).column("vector")
        rows = np.arange(next_row, len(vectors), step)
        if len(rows):
            parts.append(to_matrix(vectors.take(from_numbers(rows)), who="fit"))
        next_row = (int(rows[-1]) + step if len(rows) else next_row) - len(vectors)
    if len({part.shape[1] for part in parts}) > 1:
        raise ConfigError(
            f"fit: expected embeddings of one length; got lengths of {sorted({part.shape[1] for part in parts})}"
        )
    return np.concatenate(parts)
