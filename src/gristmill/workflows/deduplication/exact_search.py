"""What `ExactDeduplicationWorkflow` does when it runs: hash, exchange, compare, and write what stays."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gristmill.backends.base import BaseExecutor, Observer
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.kernels.arrow_arrays import to_numbers
from gristmill.pipeline.workflow import WorkflowRunResult
from gristmill.stages.deduplication.document_numbers import OF_INDEX
from gristmill.stages.deduplication.exact.find_duplicates import FindDuplicates
from gristmill.stages.deduplication.exact.hash_documents import HashDocuments
from gristmill.stages.deduplication.exact.hash_index import write_index
from gristmill.stages.deduplication.row_files import in_order_of, read_column, read_rows, take_texts
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.tasks.text_columns import from_texts
from gristmill.workflows.deduplication.dataset_index import DatasetIndex
from gristmill.workflows.deduplication.dedup_input import DedupInput, given_input
from gristmill.workflows.deduplication.dedup_job import DedupJob, open_job
from gristmill.workflows.deduplication.duplicates_table import Duplicates, no_duplicates
from gristmill.workflows.deduplication.findings import Findings, remove_found

if TYPE_CHECKING:
    from gristmill.workflows.deduplication.exact_dedup import ExactDeduplicationWorkflow

PARTITION_ROWS = 2_000_000


def deduplicate(
    asked: "ExactDeduplicationWorkflow",
    initial_tasks: Sequence[AnyTask] | None,
    executor: BaseExecutor,
    observer: Observer | None,
) -> WorkflowRunResult:
    """Do what a workflow asks for."""
    started = time.monotonic()
    run_dir = Path(asked.output_path) / ".gristmill" / "exact"
    source = _source(asked, initial_tasks)
    with open_job(source, asked.output_path, run_dir, executor, observer, fresh=asked.fresh) as job:
        settings = {"kind": "exact", "normalize": asked.normalize, "text_field": asked.text_field}
        index = DatasetIndex(settings, asked.index, asked.consult, asked.output_path)
        ledger = run_dir / "identify" / "segment-1" / "ledger.jsonl"
        found = _identify(asked, job, index.files(run_dir))
        findings = Findings(found, asked.text_field, ledger, asked.alarm_share, texts_are_equal=not asked.normalize)
        result = WorkflowRunResult("exact_deduplication", metadata=findings.write(job))
        result.add_metadata("identification_time", time.monotonic() - started)
        if asked.perform_removal:

            def for_index(source: DedupInput) -> AnyStage:
                return _hashing(asked, source, for_index=True)  # type: ignore[return-value]  # stages are invariant

            remove_found(job, findings, result, asked.write_kwargs)
            index.add(job, for_index)
    return result


def _source(asked: "ExactDeduplicationWorkflow", initial_tasks: Sequence[AnyTask] | None) -> DedupInput:
    who = type(asked).__name__
    path = given_input(who, asked.input_path, initial_tasks)
    options = asked.input_filetype, asked.input_blocksize, asked.input_file_extensions, asked.read_kwargs
    return DedupInput(who, path, *options)


def _hashing(asked: "ExactDeduplicationWorkflow", source: DedupInput, *, for_index: bool = False) -> HashDocuments:
    chosen = asked.text_field, asked.id_field, asked.keep_policy(), asked.normalize
    return HashDocuments(source.numbers, *chosen, for_index=for_index)


def _identify(asked: "ExactDeduplicationWorkflow", job: DedupJob, index_files: Sequence[str]) -> Duplicates:
    source = job.source
    hashing = _hashing(asked, source)
    index = job.run_dir / "index"
    if index_files and not index.exists():
        write_index(index, *(read_column(index_files, name, np.uint64) for name in ("low", "high")))
    # A document of 1 KB on average: the input's size decides, never the machine.
    partitions = asked.total_nparts or max(1, source.num_bytes // (PARTITION_ROWS * 1024) + 1)
    stages = [
        source.reader(hashing.inputs()[1]),
        hashing,
        Exchange(["low", "high"], partitions),
        FindDuplicates(index=str(index) if index_files else None),
        ArrowWriter(str(job.run_dir / "duplicates")),
    ]
    done = job.run("find_exact_duplicates", stages, ledger="identify")
    columns = ["doc", "kept_doc", *(["id", "kept_id"] if asked.id_field else [])]
    rows = read_rows(done.output_files, columns)
    if not rows.num_rows:
        return no_duplicates()
    rows = in_order_of(rows, "doc")
    doc, kept = (to_numbers(rows.column(name), np.uint64) for name in ("doc", "kept_doc"))
    found = Duplicates(doc, kept, np.ones(len(doc)), np.zeros(len(doc), np.int32))
    if asked.id_field:
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
