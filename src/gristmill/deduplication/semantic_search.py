"""`SemanticSearch`: the steps between documents with embeddings and knowing which of them mean nearly the same.

extract embeddings ─▶ k-means on a sample ─▶ assign ─▶ exchange by cluster ─▶ cosine within clusters
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.deduplication.documents import NumberDocuments
from gristmill.deduplication.embeddings import (
    AssignClusters,
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
from gristmill.deduplication.job import DedupJob
from gristmill.deduplication.report import Duplicates, no_duplicates
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.kmeans import fit
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.reader import ArrowReader
from gristmill.stages.text.io.writer import ArrowWriter

SAMPLE_ROWS = 50_000  # embeddings k-means sees at most
MAX_PARTITIONS = 256
WHICH = ("hard", "easy", "random")
LEDGER = "extract-run"  # below the run directory, of the first pipeline: it has counted the documents


@dataclass(frozen=True)
class Clustering:
    """How embeddings are clustered. Another clustering finds other duplicates, so its name is part of the plan."""

    n_clusters: int
    max_iter: int = 300
    tol: float = 1e-4
    seed: int = 42
    fit_data_fraction: float | None = None

    def file_name(self) -> str:
        """Where the centroids are kept: what was left by a run with other settings is not taken for these."""
        settings = json.dumps(vars(self), sort_keys=True).encode()
        return f"centroids-{hashlib.blake2b(settings, digest_size=6).hexdigest()}.npy"


@dataclass(frozen=True)
class SemanticSettings:
    """What semantic duplicates are, and which of them is kept."""

    eps: float
    clustering: Clustering
    which_to_keep: Which = "hard"
    ranking: RankingStrategy | None = None
    block: int = 1024  # embeddings compared at a time

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the documents that decide which one is kept."""
        return () if self.ranking is None else tuple(self.ranking.metadata_cols)


def check_settings(who: str, eps: float | None, which_to_keep: str, distance_metric: str, n_clusters: int) -> float:
    """Return eps if all of them make sense; raise ConfigError that names the one that does not."""
    if eps is None or not 0 <= eps < 1:
        raise ConfigError(f"{who}: expected eps in [0, 1), as in cosine ≥ 1 - eps; got {eps!r}")
    if which_to_keep not in WHICH:
        raise ConfigError(f"{who}: expected which_to_keep to be one of {WHICH}; got {which_to_keep!r}")
    if distance_metric != "cosine":
        raise ConfigError(f"{who}: expected distance_metric 'cosine'; got {distance_metric!r}")
    if n_clusters < 1:
        raise ConfigError(f"{who}: expected n_clusters ≥ 1; got {n_clusters!r}")
    return eps


@dataclass(frozen=True)
class SemanticSearch:
    """One search. Its pipelines resume from their ledgers.

    `embedding` are stages that add the embeddings, for documents that have none yet, and `fields` what they read.
    """

    job: DedupJob
    settings: SemanticSettings
    embedding_field: str
    id_field: str | None
    embedding: Sequence[object] = ()
    fields: Sequence[str] = ()
    rows_at_once: int | None = None  # documents of a task for the stages that add embeddings

    def run(self) -> Duplicates:
        """Return who loses to whom."""
        files = self._extract()
        if not count_rows(files):
            return no_duplicates()
        run_dir, settings = self.job.run_dir, self.settings
        centroids = run_dir / settings.clustering.file_name()
        if not is_sealed_array(centroids):
            self._fit(files, centroids)
        stages = [
            ArrowReader(str(run_dir / "embeddings")),
            AssignClusters(str(centroids)),
            Exchange("cluster", min(MAX_PARTITIONS, settings.clustering.n_clusters)),
            FindSemanticDuplicates(settings.eps, settings.which_to_keep, settings.block, settings.ranking),
            ArrowWriter(str(run_dir / "pairs")),
        ]
        return self._found(self.job.run("find_semantic_duplicates", stages, ledger="pairs-run").output_files)

    def _extract(self) -> Sequence[str]:
        """Write the embeddings of all documents that have one; return the files."""
        source = self.job.source
        extracting = ExtractEmbeddings(self.embedding_field, self.id_field, self.settings.columns)
        given = [] if self.id_field is None else [self.id_field]
        given += [*self.settings.columns, *(self.fields if self.embedding else [self.embedding_field])]
        stages = [
            source.reader(given),
            NumberDocuments(source.numbers, self.rows_at_once),
            *self.embedding,
            extracting,
            ArrowWriter(str(self.job.run_dir / "embeddings")),
        ]
        return self.job.run("extract_embeddings", stages, ledger=LEDGER).output_files

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

    def _fit(self, files: Sequence[str], path: Path) -> None:
        clustering = self.settings.clustering
        sample = _sample(files, clustering.fit_data_fraction or 1.0)
        count, seed = clustering.n_clusters, clustering.seed
        write_sealed_array(path, fit(sample, count, seed=seed, max_iter=clustering.max_iter, tol=clustering.tol))


def _sample(files: Sequence[str], share: float) -> NDArray[np.float32]:
    """Every n-th embedding, counted over all files, so the same sample each time."""
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
            f"fit: expected embeddings of one length; got some of {sorted({part.shape[1] for part in parts})}"
        )
    return np.concatenate(parts)
