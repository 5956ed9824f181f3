"""`ExactDeduplicationWorkflow`: documents with the same text, or the same value of a column, in one call.

read, hash ─▶ exchange by hash ─▶ who loses to whom ─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.keep_policy import KeepPolicy
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of, warn_ignored
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path

IMPORTS = ["gristmill.deduplication.exact_stages"]  # and what comes with it: most of what workers need


@dataclass
class ExactDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose `text_field` occurs before.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. `text_field` may be
    any column, a URL for instance. With `normalize`, texts that differ in case, accents, punctuation or white space
    only are the same. Documents without text are kept. The report names files that lose more than `alarm_share`. The
    same call continues a run that was killed. `index` adds this dataset to an index and removes what is in it already;
    `consult` names further ones.
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
        self._keep = KeepPolicy.parse(self.keep, who="ExactDeduplicationWorkflow")
        if not self.assign_id and self.id_field is None:
            raise ConfigError("ExactDeduplicationWorkflow: expected id_field where assign_id is False; got None")
        if self.index is not None and not self.perform_removal:
            raise ConfigError("ExactDeduplicationWorkflow: expected perform_removal with index, which takes what stays")
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
        started = time.monotonic()
        executor = executor or default_executor()
        with (
            Watching("exact_deduplication", executor, quiet=quiet, observer=observer) as watching,
            executor.kept_ready(IMPORTS) as ready,
        ):
            result = self._run(initial_tasks, ready, watching.observer, started)
            watching.tell(result)
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def _run(
        self,
        initial_tasks: Sequence[AnyTask] | None,
        executor: BaseExecutor,
        observer: Observer | None,
        started: float,
    ) -> WorkflowRunResult:
        # Imported here, so that this process and those just started import at the same time.
        from gristmill.deduplication.dataset_index import DatasetIndex
        from gristmill.deduplication.exact_search import ExactSearch, ExactSettings
        from gristmill.deduplication.findings import Findings, remove_found
        from gristmill.deduplication.job import open_job
        from gristmill.deduplication.job_input import DedupInput, given_input

        def for_index(source: DedupInput) -> AnyStage:
            return settings.hashing(source, for_index=True)

        run_dir = disk_path(self.output_path, who="output_path") / ".gristmill" / "exact"
        who = type(self).__name__
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        source = DedupInput(who, given_input(who, self.input_path, initial_tasks), *options)
        settings = ExactSettings(self._keep, self.text_field, self.id_field, self.normalize, self.total_nparts)
        with open_job(source, self.output_path, run_dir, executor, observer, fresh=self.fresh) as job:
            index = DatasetIndex(settings.for_index(), self.index, self.consult, self.output_path)
            found = ExactSearch(job, settings, index.files(run_dir)).run()
            ledger = run_dir / "identify" / "segment-1" / "ledger.jsonl"
            findings = Findings(found, self.text_field, ledger, self.alarm_share, texts_are_equal=not self.normalize)
            result = findings.write(job, "exact_deduplication")
            result.add_metadata("identification_time", time.monotonic() - started)
            if self.perform_removal:
                remove_found(job, findings, result, self.write_kwargs)
                index.add(job, for_index)
            result.errors = errors_of(job.done)
        return result
