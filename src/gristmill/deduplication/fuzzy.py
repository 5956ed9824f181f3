"""`FuzzyDeduplicationWorkflow`: documents that are nearly the same, in one call, each removal verified.

A reader, the stage `FuzzyDeduplication` and a writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.fuzzy_deduplication import FuzzyDeduplication
from gristmill.deduplication.job_input import DedupInput, given_input
from gristmill.deduplication.workflow_runs import DedupRun, Kept
from gristmill.engine.plan import AnyTask
from gristmill.errors import ConfigError
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, warn_ignored
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path


@dataclass
class FuzzyDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose shingles are at least `jaccard_threshold` similar to those of a document that is kept.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. Bands are chosen so
    that a pair at the threshold is compared with a probability of more than 0.999, unless `num_bands` and
    `minhashes_per_band` are given. Texts of fewer words than a shingle are duplicates only of equal texts; documents
    without words are kept. With `index`, documents in that index are removed, and those that stay are added; `consult`
    names further indexes. The same call continues a run that was killed. With `similarity="containment"`
    a document is removed when that share of its shingles is in the one that stays; candidates are still those whose
    Jaccard similarity is high enough for the bands.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "cache_kwargs",
        "use_64_bit_hash",
        "bands_per_iteration",
        "lsh_num_output_partitions",
        "lsh_rmm_pool_size",
        "lsh_spill_memory_limit",
        "env_vars",
        "use_async_memory",
    )

    cache_path: str | None
    output_path: str
    input_path: str | Sequence[str] | None = None
    input_filetype: str = "parquet"
    input_blocksize: int | str | None = "1GiB"
    input_file_extensions: Sequence[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    cache_kwargs: Mapping[str, object] | None = None
    write_kwargs: Mapping[str, object] | None = None
    text_field: str = "text"
    perform_removal: bool = True
    seed: int = 42
    char_ngrams: int | None = None
    num_bands: int | None = None
    minhashes_per_band: int | None = None
    use_64_bit_hash: bool = False
    bands_per_iteration: int = 5
    lsh_num_output_partitions: int | None = None
    lsh_rmm_pool_size: object = "auto"
    lsh_spill_memory_limit: object = "auto"
    env_vars: Mapping[str, str] | None = None
    use_async_memory: bool = True
    _: KW_ONLY
    shingle: str = "word:5"
    jaccard_threshold: float = 0.8
    verify: bool = True
    similarity: str = "jaccard"
    keep: str = "longest"
    id_field: str | None = None
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    alarm_share: float = 0.5
    fresh: bool = False

    def __post_init__(self) -> None:
        who = type(self).__name__
        self.output_path = str(self.output_path).rstrip("/")
        if self.index is not None and not self.perform_removal:
            raise ConfigError(
                f"{who}: expected perform_removal with index, because the index stores the documents that stay"
            )
        self._stage()  # making it checks the options
        warn_ignored(self)

    def _stage(self) -> FuzzyDeduplication:
        return FuzzyDeduplication(
            self.text_field,
            self.jaccard_threshold,
            self.shingle if self.char_ngrams is None else f"char:{self.char_ngrams}",
            self.keep,
            self.id_field,
            verify=self.verify,
            similarity=self.similarity,
            num_bands=self.num_bands,
            minhashes_per_band=self.minhashes_per_band,
            seed=self.seed,
            index=self.index,
            consult=tuple(self.consult),
            alarm_share=self.alarm_share,
        )

    def run(
        self,
        initial_tasks: Sequence[AnyTask] | None = None,
        executor: BaseExecutor | None = None,
        *,
        observer: Observer | None = None,
        quiet: bool = False,
    ) -> WorkflowRunResult:
        """Find the duplicates, write their list, and unless told otherwise write the documents that stay."""
        executor = executor or default_executor()
        with (
            Watching("fuzzy_deduplication", executor, quiet=quiet, observer=observer) as watching,
            executor.kept_ready() as ready,
        ):
            result = self._run(initial_tasks, ready, watching.observer)
            watching.tell(result)
        return result

    def _run(
        self, initial_tasks: Sequence[AnyTask] | None, executor: BaseExecutor, observer: Observer | None
    ) -> WorkflowRunResult:
        who = type(self).__name__
        output = disk_path(self.output_path, who="output_path")
        run_dir = disk_path(self.cache_path or f"{output}/.gristmill", who="cache_path") / "fuzzy"
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        source = DedupInput(who, path, *options)
        kept = Kept(write_kwargs=self.write_kwargs or {}) if self.perform_removal else None
        return DedupRun(source, self._stage(), self.output_path, run_dir, executor, observer, self.fresh).run(kept)

    def curve(self) -> str:
        """Return, as lines for a person, how likely a pair is to be compared, by its similarity."""
        return self._stage().curve()
