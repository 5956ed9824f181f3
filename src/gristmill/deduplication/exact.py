"""`ExactDeduplicationWorkflow`: documents with the same text, or the same value of a column, in one call.

A reader, the stage `ExactDeduplication` and a writer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.engine.plan import AnyTask
from gristmill.errors import ConfigError
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, warn_ignored
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path

IMPORTS = ["gristmill.deduplication.exact_stages"]  # and its own imports: most of what workers need


@dataclass
class ExactDeduplicationWorkflow(WorkflowBase):
    """Of documents with the same `text_field`, keep one and remove the others.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. `text_field` may be
    any column, a URL for instance. With `normalize`, texts that differ only in case, accents, punctuation or white
    space are the same. Documents without text are kept. The report names files that lose more than `alarm_share`. The
    same call continues a run that was killed. With `index`, documents in that index are removed, and those that stay
    are added; `consult` names further indexes.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "identification_batchsize",
        "rmm_pool_size",
        "spill_memory_limit",
        "env_vars",
        "use_async_memory",
    )

    output_path: str
    input_path: str | Sequence[str] | None = None
    input_filetype: str = "parquet"
    input_blocksize: int | str | None = "2GiB"
    identification_batchsize: int = 1
    input_file_extensions: Sequence[str] | None = None
    read_kwargs: Mapping[str, object] | None = None
    write_kwargs: Mapping[str, object] | None = None
    assign_id: bool = True
    id_field: str | None = None
    text_field: str = "text"
    perform_removal: bool = True
    total_nparts: int | None = None
    rmm_pool_size: object = "auto"
    spill_memory_limit: object = "auto"
    env_vars: Mapping[str, str] | None = None
    use_async_memory: bool = True
    _: KW_ONLY
    keep: str = "first"
    normalize: bool = False
    alarm_share: float = 0.5
    index: str | None = None
    consult: Sequence[str] = field(default_factory=tuple)
    fresh: bool = False

    def __post_init__(self) -> None:
        self.output_path = str(self.output_path).rstrip("/")
        KeepPolicy.parse(self.keep, who="ExactDeduplicationWorkflow")
        if not self.assign_id and self.id_field is None:
            raise ConfigError("ExactDeduplicationWorkflow: expected id_field where assign_id is False; got None")
        if self.index is not None and not self.perform_removal:
            raise ConfigError(
                "ExactDeduplicationWorkflow: expected perform_removal with index, because the index stores what stays"
            )
        warn_ignored(self)

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
            Watching("exact_deduplication", executor, quiet=quiet, observer=observer) as watching,
            executor.kept_ready(IMPORTS) as ready,
        ):
            result = self._run(initial_tasks, ready, watching.observer)
            watching.tell(result)
        return result

    def _run(
        self, initial_tasks: Sequence[AnyTask] | None, executor: BaseExecutor, observer: Observer | None
    ) -> WorkflowRunResult:
        # Imported here, so that this process and those just started import at the same time.
        from gristmill.deduplication.exact_deduplication import ExactDeduplication
        from gristmill.deduplication.job_input import DedupInput, given_input
        from gristmill.deduplication.workflow_runs import DedupRun, Kept

        run_dir = disk_path(self.output_path, who="output_path") / ".gristmill" / "exact"
        who = type(self).__name__
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        source = DedupInput(who, given_input(who, self.input_path, initial_tasks), *options)
        stage = ExactDeduplication(
            self.text_field,
            self.keep,
            self.normalize,
            self.id_field,
            index=self.index,
            consult=tuple(self.consult),
            num_partitions=self.total_nparts,
            alarm_share=self.alarm_share,
        )
        kept = Kept(write_kwargs=self.write_kwargs or {}) if self.perform_removal else None
        return DedupRun(source, stage, self.output_path, run_dir, executor, observer, self.fresh).run(kept)
