"""`PartDeduplicationWorkflow`: lines or paragraphs that occur in many documents are taken out of all but the first."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.exact_stages import FindDuplicates
from gristmill.deduplication.files_between import read_column
from gristmill.deduplication.job import DedupJob, open_job
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.part_stages import SEPARATORS, HashParts, RemoveParts, Unit, are_parts, write_parts
from gristmill.errors import ConfigError
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of
from gristmill.runs.books import RunResult
from gristmill.runs.user import Observer
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.formats import WRITERS
from gristmill.stages.text.io.writer import ArrowWriter
from gristmill.storage.file_system import disk_path

PARTITION_BYTES = 64 * 1024**2


@dataclass
class PartDeduplicationWorkflow(WorkflowBase):
    """Take out every line (or paragraph) that has occurred before, if it occurs at least `min_count` times.

    Blank lines and lines of fewer than `min_chars` characters do not count and stay. White space around a line does not
    count. A document of which fewer than `min_left_chars` characters are left is dropped. The files below
    `output_path/deduplicated` are named like the input's.
    """

    output_path: str
    input_path: str | Sequence[str]
    input_filetype: str = "jsonl"
    text_field: str = "text"
    _: KW_ONLY
    unit: Unit = "line"
    min_count: int = 2
    min_chars: int = 1
    min_left_chars: int = 1
    input_blocksize: int | str | None = None
    read_kwargs: Mapping[str, object] | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        self.output_path = str(self.output_path).rstrip("/")
        if self.unit not in SEPARATORS:
            raise ConfigError(
                f"PartDeduplicationWorkflow: expected unit to be one of {[*SEPARATORS]}; got {self.unit!r}"
            )
        if self.min_count < 2:
            raise ConfigError(f"PartDeduplicationWorkflow: expected min_count ≥ 2; got {self.min_count!r}")

    def run(
        self, executor: BaseExecutor | None = None, *, observer: Observer | None = None, quiet: bool = False
    ) -> WorkflowRunResult:
        """Find what repeats, then write the documents without it."""
        executor = executor or default_executor()
        with Watching("part_deduplication", executor, quiet=quiet, observer=observer) as watching:
            result = self._run(executor, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        started = time.monotonic()
        path = self.input_path if isinstance(self.input_path, str) else [str(path) for path in self.input_path]
        who = type(self).__name__
        source = DedupInput(who, path, self.input_filetype, self.input_blocksize, None, self.read_kwargs)
        run_dir = disk_path(self.output_path, who="output_path") / ".gristmill" / f"{self.unit}s"
        with open_job(source, self.output_path, run_dir, executor, observer, fresh=self.fresh) as job:
            num_parts, done = self._find_and_remove(job)
        numbers = {"num_parts_removed": num_parts, "num_documents": done.read, "num_kept": done.written}
        return WorkflowRunResult(
            "part_deduplication",
            {"removal": done},
            {**numbers, "total_time": time.monotonic() - started},
            f"{num_parts:,} {self.unit}s taken out, {done.written:,} of {done.read:,} documents left",
            errors_of(job.done),
        )

    def _find_and_remove(self, job: DedupJob) -> tuple[int, RunResult]:
        source, run_dir = job.source, job.run_dir
        stages = [
            source.reader([self.text_field]),
            HashParts(source.numbers, self.unit, self.text_field, self.min_chars),
            Exchange(["low", "high"], source.num_bytes // PARTITION_BYTES + 1),
            FindDuplicates(self.min_count),
            ArrowWriter(str(run_dir / "duplicates")),
        ]
        found = job.run("find_repeated_parts", stages, ledger="identify")
        doc = read_column(found.output_files, "doc", np.uint64)
        if not are_parts(run_dir / "parts"):
            write_parts(run_dir / "parts", doc, read_column(found.output_files, "part", np.int32))
        removing = RemoveParts(source.numbers, str(run_dir / "parts"), self.unit, self.text_field, self.min_left_chars)
        writer = WRITERS[source.filetype](job.kept_path)
        return len(doc), job.run("remove_repeated_parts", [source.reader(), removing, writer], ledger="remove")
