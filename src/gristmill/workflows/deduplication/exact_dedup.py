"""`ExactDeduplicationWorkflow`: documents with the same text, or the same value of a column, in one call.

read, hash ─▶ exchange by hash ─▶ who loses to whom ─▶ duplicates.parquet ─▶ read again, write those that stay
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from gristmill.backends.base import BaseExecutor, Observer
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import to_numbers
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult
from gristmill.stages.deduplication.document_numbers import OF_INDEX
from gristmill.stages.deduplication.exact.find_duplicates import FindDuplicates
from gristmill.stages.deduplication.exact.hash_documents import HashDocuments
from gristmill.stages.deduplication.exact.hash_index import write_index
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.stages.deduplication.row_files import in_order_of, read_column, read_rows, take_texts
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.tasks.text_columns import from_texts
from gristmill.workflows.deduplication.dataset_index import DatasetIndex
from gristmill.workflows.deduplication.dedup_input import DedupInput, given_input
from gristmill.workflows.deduplication.dedup_job import DedupJob, open_job
from gristmill.workflows.deduplication.duplicates_table import Duplicates, no_duplicates
from gristmill.workflows.deduplication.findings import Findings, remove_found
from gristmill.workflows.deduplication.ignored_options import warn_ignored

ROW_BYTES = 48  # of a document on its way through the exchange
PARTITION_ROWS = 2_000_000


@dataclass
class ExactDeduplicationWorkflow(WorkflowBase):
    """Remove documents whose `text_field` occurs before.

    Below `output_path` it writes `deduplicated/` (with `perform_removal`) and `duplicates.parquet`. `text_field` may be
    any column, a URL for instance. With `normalize`, texts that differ in case, accents, punctuation or white space
    only are the same. Documents without text are kept. The report names files that lose more than `alarm_share`. The
    same call continues a run that was killed. `index` adds this dataset to an index and removes what is in it already;
    `consult` names further ones.
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
        run_dir = Path(self.output_path) / ".gristmill" / "exact"
        source = self._source(initial_tasks)
        with open_job(source, self.output_path, run_dir, executor, observer, fresh=self.fresh) as job:
            settings = {"kind": "exact", "normalize": self.normalize, "text_field": self.text_field}
            index = DatasetIndex(settings, self.index, self.consult, self.output_path)
            ledger = run_dir / "identify" / "segment-1" / "ledger.jsonl"
            found = self._identify(job, index.files(run_dir))
            findings = Findings(found, self.text_field, ledger, self.alarm_share, texts_are_equal=not self.normalize)
            result = WorkflowRunResult("exact_deduplication", metadata=findings.write(job))
            result.add_metadata("identification_time", time.monotonic() - started)
            if self.perform_removal:
                remove_found(job, findings, result, self.write_kwargs)
                index.add(job, self._for_index)
        result.add_metadata("total_time", time.monotonic() - started)
        return result

    def _source(self, initial_tasks: Sequence[AnyTask] | None) -> DedupInput:
        who = type(self).__name__
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.read_kwargs
        return DedupInput(who, path, *options)

    def _hashing(self, source: DedupInput, *, for_index: bool = False) -> HashDocuments:
        chosen = self.text_field, self.id_field, self._keep, self.normalize
        return HashDocuments(source.numbers, *chosen, for_index=for_index)

    def _for_index(self, source: DedupInput) -> AnyStage:
        return self._hashing(source, for_index=True)  # type: ignore[return-value]  # stages are invariant

    def _identify(self, job: DedupJob, index_files: Sequence[str]) -> Duplicates:
        source = job.source
        hashing = self._hashing(source)
        index = job.run_dir / "index"
        if index_files and not index.exists():
            write_index(index, *(read_column(index_files, name, np.uint64) for name in ("low", "high")))
        # A document of 1 KB on average: the input's size decides, never the machine.
        partitions = self.total_nparts or max(1, source.num_bytes // (PARTITION_ROWS * 1024) + 1)
        stages = [
            source.reader(hashing.inputs()[1]),
            hashing,
            Exchange(["low", "high"], partitions),
            FindDuplicates(index=str(index) if index_files else None),
            ArrowWriter(str(job.run_dir / "duplicates")),
        ]
        done = job.run("find_exact_duplicates", stages, ledger="identify")
        columns = ["doc", "kept_doc", *(["id", "kept_id"] if self.id_field else [])]
        rows = read_rows(done.output_files, columns)
        if not rows.num_rows:
            return no_duplicates()
        rows = in_order_of(rows, "doc")
        doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
        found = Duplicates(doc, kept, np.ones(len(doc)), np.zeros(len(doc), np.int32))
        if self.id_field:
            found.ids, found.kept_ids = rows.column("id").combine_chunks(), rows.column("kept_id").combine_chunks()
        if index_files:
            found.kept_ids = _with_index_ids(source, found, index_files)
        return found


def _with_index_ids(source: DedupInput, found: Duplicates, index_files: Sequence[str]) -> pa.Array:
    """The ids of the documents that stay, those of an index from its files."""
    numbers = found.kept_doc.tolist()
    if found.kept_ids is None:
        texts = [source.numbers.label(number) if number < OF_INDEX else "" for number in numbers]
    else:
        texts = found.kept_ids.to_pylist()
    of_index = np.flatnonzero(found.kept_doc >= np.uint64(OF_INDEX))
    positions = (found.kept_doc[of_index] & ~np.uint64(OF_INDEX)).astype(np.int64)
    for place, text in zip(of_index.tolist(), take_texts(index_files, "id", positions), strict=True):
        texts[place] = text
    return from_texts(texts)
