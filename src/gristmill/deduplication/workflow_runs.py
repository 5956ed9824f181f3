"""What the workflows have in common: a reader, one stage that deduplicates, a writer, and what is reported."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.backends.base import BaseExecutor
from gristmill.deduplication.deduplication_stage import DeduplicationStage
from gristmill.deduplication.job_input import DedupInput
from gristmill.engine.plan import AnyStage
from gristmill.pipeline import Pipeline
from gristmill.pipeline.search_only import search_only
from gristmill.pipeline.workflow import WorkflowRunResult, errors_of
from gristmill.runs.summary import output_line
from gristmill.runs.user import Observer
from gristmill.stages.text.io.formats import WRITERS

KEPT = "deduplicated"  # below the output: the documents that stay


@dataclass(frozen=True)
class Kept:
    """The form in which the documents that stay are written; None means as they came."""

    filetype: str | None = None
    file_extension: str | None = None
    fields: tuple[str, ...] | None = None
    write_kwargs: Mapping[str, object] = field(default_factory=dict)

    def writer(self, path: str, filetype: str) -> AnyStage:
        """Return the stage that writes them, given the format they came in."""
        options: dict[str, object] = {"file_extension": self.file_extension} if self.file_extension else {}
        options |= {"fields": list(self.fields)} if self.fields is not None else {}
        make = WRITERS[self.filetype or filetype]
        return make(path, write_kwargs=dict(self.write_kwargs), **options)  # type: ignore[arg-type]


@dataclass(frozen=True)
class DedupRun:
    """One call of a workflow. The same call continues it."""

    source: DedupInput
    stage: DeduplicationStage
    output_path: str
    run_dir: Path
    executor: BaseExecutor
    observer: Observer | None = None
    fresh: bool = False

    def run(self, kept: Kept | None) -> WorkflowRunResult:
        """Find the duplicates and write what is to be kept; without `kept` write their list only."""
        started, name = time.monotonic(), self.stage.name
        stage = self.stage.with_()
        stage.report_path, stage._dataset = self.output_path, self.output_path  # type: ignore[attr-defined]
        kept_path = f"{self.output_path}/{KEPT}"
        for path in (self.run_dir, kept_path) if self.fresh else ():
            shutil.rmtree(path, ignore_errors=True)
        stages: list[AnyStage] = [self.source.reader(), stage]
        if kept is None:
            found, errors = search_only(
                Pipeline(name, stages=stages), self.executor, self.run_dir, observer=self.observer
            )
            result = _told(name, found[name])
            result.errors = errors
        else:
            pipeline = Pipeline(name, stages=[*stages, kept.writer(kept_path, self.source.filetype)])
            done = pipeline.run(self.executor, checkpoint_path=self.run_dir, observer=self.observer, quiet=True)
            result = _told(name, done.found[name])
            result.add_pipeline_tasks("removal", done)
            result.extend_metadata({"num_kept": done.written, "quarantined": done.quarantined})
            result.summary = "\n".join([result.summary, *output_line(done)])
            result.errors = errors_of([done])
        result.add_metadata("total_time", time.monotonic() - started)
        return result


def _told(workflow: str, found: Mapping[str, object]) -> WorkflowRunResult:
    """What a workflow's result says about what was found."""
    metadata = {key: value for key, value in found.items() if key != "summary"}
    places = f"duplicates   {found['duplicates_path']}\nreport       {found['report_path']}"
    return WorkflowRunResult(workflow, metadata=metadata, summary=f"{found['summary']}\n\n{places}")
