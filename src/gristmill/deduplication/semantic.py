"""`SemanticDeduplicationWorkflow`: documents whose embeddings are nearly the same, found within clusters.

read, extract embeddings ─▶ k-means on a sample ─▶ assign ─▶ exchange by cluster ─▶ cosine within clusters
─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.embeddings import (
    AssignClusters,
    ExtractEmbeddings,
    FindSemanticDuplicates,
    RankingStrategy,
    Which,
    to_matrix,
)
from gristmill.deduplication.files_between import in_order_of, is_sealed_array, read_rows, write_sealed_array
from gristmill.deduplication.findings import Findings, remove_found
from gristmill.deduplication.job import DedupJob, open_job
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.report import Duplicates, no_duplicates
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.kernels.kmeans import fit
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of, warn_ignored
from gristmill.runs.user import Observer
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.reader import ArrowReader
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.storage.file_system import disk_path

SAMPLE_ROWS = 50_000  # embeddings k-means sees at most
MAX_PARTITIONS = 256
WHICH = ("hard", "easy", "random")


@dataclass
class SemanticDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose embedding's cosine to that of a kept document of its cluster is at least 1 - `eps`.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`), `duplicates.parquet` and `report.json`. A
    cluster must fit in memory; similarities are computed in blocks. Documents without an embedding are kept. Without
    `verbose` it says nothing while it runs.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "embedding_dim",
        "metadata_fields",
        "init",
        "n_init",
        "oversampling_factor",
        "max_samples_per_batch",
        "_duplicates_num_row_groups_hint",
        "cache_kwargs",
    )

    input_path: str | Sequence[str]
    output_path: str
    n_clusters: int
    cache_path: str | None = None
    id_field: str = "id"
    embedding_field: str = "embeddings"
    embedding_dim: int | None = None
    metadata_fields: Sequence[str] | None = None
    input_filetype: str = "parquet"
    input_file_extensions: Sequence[str] | None = None
    max_iter: int = 300
    tol: float = 1e-4
    random_state: int = 42
    init: str = "k-means||"
    n_init: int = 1
    oversampling_factor: float = 2.0
    max_samples_per_batch: int = 32768
    fit_data_fraction: float | None = None
    distance_metric: str = "cosine"
    which_to_keep: Which = "hard"
    ranking_strategy: RankingStrategy | None = None
    pairwise_batch_size: int = 1024
    eps: float | None = None
    _duplicates_num_row_groups_hint: int | None = None
    read_kwargs: Mapping[str, object] | None = None
    cache_kwargs: Mapping[str, object] | None = None
    write_kwargs: Mapping[str, object] | None = None
    clear_output: bool = False
    verbose: bool = True
    _: KW_ONLY
    perform_removal: bool = True
    text_field: str = "text"
    alarm_share: float = 0.5

    def __post_init__(self) -> None:
        who = type(self).__name__
        self.output_path = str(self.output_path).rstrip("/")
        if self.eps is None or not 0 <= self.eps < 1:
            raise ConfigError(f"{who}: expected eps in [0, 1), as in cosine ≥ 1 - eps; got {self.eps!r}")
        if self.which_to_keep not in WHICH:
            raise ConfigError(f"{who}: expected which_to_keep to be one of {WHICH}; got {self.which_to_keep!r}")
        if self.distance_metric != "cosine":
            raise ConfigError(f"{who}: expected distance_metric 'cosine'; got {self.distance_metric!r}")
        if self.n_clusters < 1:
            raise ConfigError(f"{who}: expected n_clusters ≥ 1; got {self.n_clusters!r}")
        warn_ignored(self)

    def run(
        self,
        kmeans_executor: BaseExecutor | None = None,
        pairwise_executor: BaseExecutor | None = None,
        *,
        executor: BaseExecutor | None = None,
        observer: Observer | None = None,
        quiet: bool = False,
    ) -> WorkflowRunResult:
        """Find the duplicates, write their list, and unless told otherwise write the documents that stay."""
        chosen = executor or pairwise_executor or kmeans_executor or default_executor()
        with Watching("semantic_deduplication", chosen, quiet=quiet or not self.verbose, observer=observer) as watching:
            result = self._run(chosen, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        started = time.monotonic()
        output = disk_path(self.output_path, who="output_path")
        run_dir = disk_path(self.cache_path or f"{output}/.gristmill", who="cache_path") / "semantic"
        path = self.input_path if isinstance(self.input_path, str) else [str(path) for path in self.input_path]
        extensions, options = self.input_file_extensions, self.read_kwargs
        source = DedupInput(type(self).__name__, path, self.input_filetype, None, extensions, options)
        with open_job(source, self.output_path, run_dir, executor, observer, fresh=self.clear_output) as job:
            ledger = run_dir / "extract-run" / "ledger.jsonl"
            findings = Findings(self._search(job), self.text_field, ledger, self.alarm_share)
            result = findings.write(job, "semantic_deduplication")
            if self.perform_removal:
                remove_found(job, findings, result, self.write_kwargs)
            result.errors = errors_of(job.done)
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def _search(self, job: DedupJob) -> Duplicates:
        source, run_dir = job.source, job.run_dir
        ranking = self.ranking_strategy
        columns = () if ranking is None else tuple(ranking.metadata_cols)
        extracting = ExtractEmbeddings(source.numbers, self.embedding_field, self.id_field, columns)
        stages = [source.reader(extracting.inputs()[1]), extracting, ArrowWriter(str(run_dir / "embeddings"))]
        files = job.run("extract_embeddings", stages, ledger="extract-run").output_files
        centroids = run_dir / "centroids.npy"
        if not files:
            return no_duplicates()
        if not is_sealed_array(centroids):
            self._fit(files, centroids)
        finding = FindSemanticDuplicates(self.eps or 0.0, self.which_to_keep, self.pairwise_batch_size, ranking)
        stages = [
            ArrowReader(str(run_dir / "embeddings")),
            AssignClusters(str(centroids)),
            Exchange("cluster", min(MAX_PARTITIONS, self.n_clusters)),
            finding,
            ArrowWriter(str(run_dir / "pairs")),
        ]
        found = job.run("find_semantic_duplicates", stages, ledger="pairs-run")
        rows = read_rows(found.output_files, ["doc", "kept_doc", "similarity", "id", "kept_id"])
        if not rows.num_rows:
            return no_duplicates()
        rows = in_order_of(rows, "doc")
        doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
        cosine = to_numbers(rows.column("similarity"), np.float64)
        duplicates = Duplicates(doc, kept, cosine, np.zeros(len(doc), np.int32))
        duplicates.ids, duplicates.kept_ids = (rows.column(name).combine_chunks() for name in ("id", "kept_id"))
        return duplicates

    def _fit(self, files: Sequence[str], path: Path) -> None:
        """Write the centroids of a sample: every n-th embedding, so the same sample each time."""
        sample = self._sample(files)
        centroids = fit(sample, self.n_clusters, seed=self.random_state, max_iter=self.max_iter, tol=self.tol)
        write_sealed_array(path, centroids)

    def _sample(self, files: Sequence[str]) -> NDArray[np.float32]:
        total = sum(read_rows([file], ["doc"]).num_rows for file in files)
        most = min(SAMPLE_ROWS, int(total * (self.fit_data_fraction or 1.0)) or 1)
        step = max(1, total // most)
        parts = []
        for file in files:
            vectors = read_rows([file], ["vector"]).column("vector")
            parts.append(to_matrix(vectors.take(from_numbers(np.arange(0, len(vectors), step))), who="fit"))
        return np.concatenate(parts)
