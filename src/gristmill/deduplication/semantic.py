"""`SemanticDeduplicationWorkflow`: documents whose embeddings are nearly the same, found within clusters.

A reader, the stage `SemanticDeduplication` and a writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.embeddings import RankingStrategy, Which
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.semantic_deduplication import SemanticDeduplication, check_settings
from gristmill.deduplication.workflow_runs import DedupRun, Kept
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, warn_ignored
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path


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
        check_settings(who, self.eps, self.which_to_keep, self.distance_metric, self.n_clusters)
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
        quiet = quiet or not self.verbose
        with (
            Watching("semantic_deduplication", chosen, quiet=quiet, observer=observer) as watching,
            chosen.kept_ready() as ready,
        ):
            result = self._run(ready, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        output = disk_path(self.output_path, who="output_path")
        run_dir = disk_path(self.cache_path or f"{output}/.gristmill", who="cache_path") / "semantic"
        path = self.input_path if isinstance(self.input_path, str) else [str(path) for path in self.input_path]
        extensions, options = self.input_file_extensions, self.read_kwargs
        source = DedupInput(type(self).__name__, path, self.input_filetype, None, extensions, options)
        stage = SemanticDeduplication(
            self.n_clusters,
            self.eps or 0.0,
            self.embedding_field,
            self.which_to_keep,
            self.id_field,
            ranking_strategy=self.ranking_strategy,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            fit_data_fraction=self.fit_data_fraction,
            pairwise_batch_size=self.pairwise_batch_size,
            text_field=self.text_field,
            alarm_share=self.alarm_share,
        )
        kept = Kept(write_kwargs=self.write_kwargs or {}) if self.perform_removal else None
        return DedupRun(source, stage, self.output_path, run_dir, executor, observer, self.clear_output).run(kept)
