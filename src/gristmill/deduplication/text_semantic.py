"""`TextSemanticDeduplicationWorkflow`: embed texts and remove those that mean nearly the same, in one call.

A reader, the stage `SemanticDeduplication` with a model that makes the embeddings for its search, and a writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib.util import find_spec
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.embeddings import RankingStrategy, Which
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.semantic_deduplication import SemanticDeduplication, check_settings
from gristmill.deduplication.workflow_runs import DedupRun, Kept
from gristmill.errors import ConfigError
from gristmill.models.weights import keep_token
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, warn_ignored
from gristmill.runs.user import Observer
from gristmill.stages.base import AnyStage
from gristmill.stages.deduplication.id_generator import CURATOR_DEDUP_ID_STR
from gristmill.stages.text.embedders import EmbeddingCreatorStage
from gristmill.stages.text.embedders.vllm import VLLMEmbeddingModelStage
from gristmill.stages.text.io.formats import WRITERS, check_format
from gristmill.storage.file_system import disk_path

# Documents a model gets at a time. A source partition of 32 MiB may hold a hundred thousand short texts, whose
# embeddings would be 150 MB in one piece, all made by one worker.
ROWS_AT_ONCE = 1024
EMBEDDING = "_gristmill_embedding"  # on the way only: documents may have embeddings of their own, which are left alone


@dataclass
class TextSemanticDeduplicationWorkflow(WorkflowBase):
    """Embed texts, then remove those whose cosine to a kept text of the same cluster is at least 1 - `eps`.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`), `duplicates.parquet` and `report.json`.
    Documents without text are kept, and so are those the model failed on. With the default `id_field` a document is
    known by its place in the input; any other names a column. The same call continues a run that was killed;
    `clear_output` starts over. `model_identifier` is whatever `EmbeddingCreatorStage` takes.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "embedding_field",
        "embedding_dim",
        "metadata_fields",
        "kmeans_init",
        "kmeans_n_init",
        "kmeans_oversampling_factor",
        "kmeans_max_samples_per_batch",
        "_duplicates_num_row_groups_hint",
        "id_generator_state_file",
        "input_files_per_partition",
        "cache_kwargs",
    )

    input_path: str | Sequence[str]
    output_path: str
    cache_path: str | None = None
    perform_removal: bool = True
    text_field: str = "text"
    embedding_field: str = "embeddings"
    model_identifier: str = "google/embeddinggemma-300m"
    embedding_max_chars: int | None = None
    embedding_pretokenize: bool = False
    embedding_vllm_init_kwargs: Mapping[str, object] | None = None
    hf_token: str | None = field(default=None, repr=False)
    model_cache_dir: str | None = None
    n_clusters: int = 100
    id_field: str = CURATOR_DEDUP_ID_STR
    embedding_dim: int | None = None
    metadata_fields: Sequence[str] | None = None
    distance_metric: str = "cosine"
    which_to_keep: Which = "hard"
    eps: float | None = 0.01
    kmeans_max_iter: int = 300
    kmeans_tol: float = 1e-4
    kmeans_random_state: int = 42
    kmeans_init: str = "k-means||"
    kmeans_n_init: int = 1
    kmeans_oversampling_factor: float = 2.0
    kmeans_max_samples_per_batch: int = 32768
    ranking_strategy: RankingStrategy | None = None
    pairwise_batch_size: int = 1024
    _duplicates_num_row_groups_hint: int | None = None
    use_id_generator: bool = False
    id_generator_state_file: str | None = None
    input_filetype: str = "parquet"
    input_file_extensions: Sequence[str] | None = None
    input_files_per_partition: int | None = None
    input_blocksize: int | str | None = None
    output_filetype: str = "parquet"
    output_file_extension: str | None = None
    output_fields: Sequence[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    cache_kwargs: Mapping[str, object] | None = None
    write_kwargs: Mapping[str, object] | None = None
    clear_output: bool = False
    verbose: bool = True
    _: KW_ONLY
    offline: bool | None = None
    alarm_share: float = 0.5

    def __post_init__(self) -> None:
        who = type(self).__name__
        self.output_path = str(self.output_path).rstrip("/")
        check_settings(who, self.eps, self.which_to_keep, self.distance_metric, self.n_clusters)
        check_format(self.output_filetype, WRITERS, who=who, option="output_filetype")
        if self.use_id_generator and self.id_field != CURATOR_DEDUP_ID_STR:
            raise ConfigError(
                f"{who}: expected either use_id_generator or an id_field of the documents; got both, {self.id_field!r}"
            )
        keep_token(self.hf_token)
        self.hf_token = None
        self._embedder()  # making it checks its options
        warn_ignored(self)

    def run(
        self,
        streaming_executor: BaseExecutor | tuple[BaseExecutor, ...] | None = None,
        batch_executor: BaseExecutor | None = None,
        *,
        executor: BaseExecutor | None = None,
        observer: Observer | None = None,
        quiet: bool = False,
    ) -> WorkflowRunResult:
        """Embed, find the duplicates, write their list, and unless told otherwise write the documents that stay.

        All steps run on one executor: the first that is given.
        """
        first = streaming_executor[0] if isinstance(streaming_executor, tuple) else streaming_executor
        chosen = executor or first or batch_executor or default_executor()
        quiet = quiet or not self.verbose
        with (
            Watching("text_semantic_deduplication", chosen, quiet=quiet, observer=observer) as watching,
            chosen.kept_ready() as ready,
        ):
            result = self._run(ready, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        output = disk_path(self.output_path, who="output_path")
        run_dir = disk_path(self.cache_path or f"{output}/.gristmill", who="cache_path") / "text-semantic"
        fields = None if self.output_fields is None else tuple(self.output_fields)
        kept = Kept(self.output_filetype, self.output_file_extension, fields, self.write_kwargs or {})
        run = DedupRun(self._input(), self._stage(), self.output_path, run_dir, executor, observer, self.clear_output)
        result = run.run(kept if self.perform_removal else None)
        result.workflow_name = "text_semantic_deduplication"
        result.add_metadata("embedding_time", result.get_metadata("identification_time"))
        return result

    def _input(self) -> DedupInput:
        path = self.input_path if isinstance(self.input_path, str) else [str(path) for path in self.input_path]
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        return DedupInput(type(self).__name__, path, *options)

    def _embedder(self) -> AnyStage:
        if self.embedding_vllm_init_kwargs is None and find_spec("vllm") is None:
            return EmbeddingCreatorStage(
                self.model_identifier,
                text_field=self.text_field,
                embedding_field=EMBEDDING,
                cache_dir=self.model_cache_dir,
                max_chars=self.embedding_max_chars,
                offline=self.offline,
            )
        return VLLMEmbeddingModelStage(
            self.model_identifier,
            self.embedding_vllm_init_kwargs,
            self.text_field,
            self.embedding_pretokenize,
            EMBEDDING,
            self.embedding_max_chars,
            self.model_cache_dir,
            offline=self.offline,
        )

    def _stage(self) -> SemanticDeduplication:
        stage = SemanticDeduplication(
            self.n_clusters,
            self.eps or 0.0,
            EMBEDDING,
            self.which_to_keep,
            None if self.id_field == CURATOR_DEDUP_ID_STR else self.id_field,
            ranking_strategy=self.ranking_strategy,
            max_iter=self.kmeans_max_iter,
            tol=self.kmeans_tol,
            random_state=self.kmeans_random_state,
            pairwise_batch_size=self.pairwise_batch_size,
            text_field=self.text_field,
            alarm_share=self.alarm_share,
        )
        stage._embedding, stage._embedded = [self._embedder()], [self.text_field]
        stage._rows_at_once = ROWS_AT_ONCE
        return stage
