"""`ExactDeduplicationWorkflow`: documents with the same text, or the same value of a column, in one call.

read, hash ─▶ exchange by hash ─▶ who loses to whom ─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import numpy as np

from gristmill.backends.base import BaseExecutor, Observer
from gristmill.engine.plan import AnyTask
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.pipeline import Pipeline
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult
from gristmill.stages.deduplication.exact.find_duplicates import FindDuplicates
from gristmill.stages.deduplication.exact.hash_documents import HashDocuments
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.workflows.deduplication.dedup_input import DedupInput, given_input
from gristmill.workflows.deduplication.duplicates_table import Duplicates, no_duplicates
from gristmill.workflows.deduplication.findings import write_findings
from gristmill.workflows.deduplication.ignored_options import warn_ignored
from gristmill.workflows.deduplication.removal import remove_documents, start_over
from gristmill.workflows.deduplication.row_files import read_rows

ROW_BYTES = 48  # of a document on its way through the exchange
PARTITION_ROWS = 2_000_000


@dataclass
class ExactDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose `text_field` occurs before.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. `text_field` may be
    any column, a URL for instance. With `normalize`, texts that differ in case, accents, punctuation or white space
    only are the same. Documents without text are kept. The report names files that lose more than `alarm_share`. The
    same call continues a run that was killed.
    """

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
    fresh: bool = False

    def __post_init__(self) -> None:
        self.output_path = str(self.output_path).rstrip("/")
        self._keep = KeepPolicy.parse(self.keep, who="ExactDeduplicationWorkflow")
        if not self.assign_id and self.id_field is None:
            raise ConfigError("ExactDeduplicationWorkflow: expected id_field where assign_id is False; got None")
        defaults = {"rmm_pool_size": "auto", "spill_memory_limit": "auto", "env_vars": None, "use_async_memory": True}
        warn_ignored("ExactDeduplicationWorkflow", self, {**defaults, "identification_batchsize": 1})

    def run(
        self,
        initial_tasks: Sequence[AnyTask] | None = None,
        executor: BaseExecutor | None = None,
        *,
        observer: Observer | None = None,
    ) -> WorkflowRunResult:
        """Find the duplicates, write their list, and unless told otherwise write the documents that stay."""
        started = time.monotonic()
        source = self._source(initial_tasks)
        run_dir = Path(self.output_path) / ".gristmill" / "exact"
        if self.fresh:
            start_over(run_dir, self.output_path)
        duplicates = self._identify(source, run_dir, executor, observer)
        result = WorkflowRunResult("exact_deduplication")
        findings = write_findings(
            source,
            duplicates,
            self.output_path,
            text_field=self.text_field,
            ledger_path=run_dir / "identify" / "segment-1" / "ledger.jsonl",
            alarm_share=self.alarm_share,
        )
        result.extend_metadata({**findings, "identification_time": time.monotonic() - started})
        if self.perform_removal:
            removed = remove_documents(
                source,
                duplicates.doc,
                f"{self.output_path}/deduplicated",
                run_dir,
                executor=executor,
                observer=observer,
                write_kwargs=dict(self.write_kwargs or {}),
            )
            result.add_pipeline_tasks("removal", removed)
            result.extend_metadata({"num_kept": removed.written, "quarantined": removed.quarantined})
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def _source(self, initial_tasks: Sequence[AnyTask] | None) -> DedupInput:
        who = type(self).__name__
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        return DedupInput(who, path, *options)

    def _identify(
        self, source: DedupInput, run_dir: Path, executor: BaseExecutor | None, observer: Observer | None
    ) -> Duplicates:
        hashing = HashDocuments(source.numbers, self.text_field, self.id_field, self._keep, self.normalize)
        hashing.compile()
        # A document of 1 KB on average: the input's size decides, never the machine.
        partitions = self.total_nparts or max(1, source.num_bytes // (PARTITION_ROWS * 1024) + 1)
        stages = [
            source.reader(hashing.inputs()[1]),
            hashing,
            Exchange(["low", "high"], partitions),
            FindDuplicates(),
            ArrowWriter(str(run_dir / "duplicates")),
        ]
        pipeline = Pipeline("find_exact_duplicates", stages=stages)  # type: ignore[arg-type]  # stages are invariant
        done = pipeline.run(executor, checkpoint_path=run_dir / "identify", observer=observer)
        columns = ["doc", "kept_doc", *(["id", "kept_id"] if self.id_field else [])]
        rows = read_rows(done.output_files, columns)
        if not rows.num_rows:
            return no_duplicates()
        doc = to_numbers(rows.column("doc"), np.uint64)
        order = np.argsort(doc)
        rows = rows.take(from_numbers(order)).combine_chunks()
        found = Duplicates(
            doc[order],
            to_numbers(rows.column("kept_doc"), np.uint64),
            np.ones(len(doc)),
            np.zeros(len(doc), np.int32),
        )
        if self.id_field:
            found.ids, found.kept_ids = rows.column("id").combine_chunks(), rows.column("kept_id").combine_chunks()
        return found
