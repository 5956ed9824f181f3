"""`PartDeduplicationWorkflow`: lines or paragraphs that occur in many documents, taken out of all but the first.

A reader, the stage `PartDeduplication` and a writer.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.job_input import DedupInput
from gristmill.deduplication.part_deduplication import PartDeduplication
from gristmill.deduplication.part_stages import Unit
from gristmill.deduplication.workflow_runs import KEPT, Kept
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of
from gristmill.runs.summary import output_line
from gristmill.runs.user import Observer
from gristmill.storage.file_system import disk_path


@dataclass
class PartDeduplicationWorkflow(WorkflowBase):
    """Take out every line (or paragraph) that has occurred before, if it occurs at least `min_count` times.

    Blank lines and lines of fewer than `min_chars` characters are not counted and stay. White space around a line is
    ignored. A document with fewer than `min_left_chars` characters left is dropped. The files below
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
        self._stage()  # making it checks the options

    def _stage(self) -> PartDeduplication:
        counting = self.unit, self.text_field, self.min_count
        return PartDeduplication(*counting, min_chars=self.min_chars, min_left_chars=self.min_left_chars)

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
        who, kept_path = type(self).__name__, f"{self.output_path}/{KEPT}"
        source = DedupInput(who, path, self.input_filetype, self.input_blocksize, None, self.read_kwargs)
        run_dir = disk_path(self.output_path, who="output_path") / ".gristmill" / f"{self.unit}s"
        for left in (run_dir, kept_path) if self.fresh else ():
            shutil.rmtree(left, ignore_errors=True)
        stage = self._stage()
        pipeline = Pipeline(stage.name, stages=[source.reader(), stage, Kept().writer(kept_path, source.filetype)])
        done = pipeline.run(executor, checkpoint_path=run_dir, observer=observer, quiet=True)
        num_parts = done.found[stage.name]["num_parts_removed"]
        numbers = {"num_parts_removed": num_parts, "num_documents": done.read, "num_kept": done.written}
        told = f"{num_parts:,} {self.unit}s taken out, {done.written:,} of {done.read:,} documents left"
        return WorkflowRunResult(
            "part_deduplication",
            {"removal": done},
            {**numbers, "total_time": time.monotonic() - started},
            "\n".join([told, "", *output_line(done)]),
            errors_of([done]),
        )
