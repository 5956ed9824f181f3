"""What every deduplication leaves for its user: `duplicates.parquet`, `report.json` and the documents that stay."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gristmill.deduplication.job import DedupJob, Kept
from gristmill.deduplication.report import Duplicates, describe, make_report, write_duplicates
from gristmill.pipeline.workflow import WorkflowRunResult
from gristmill.storage.atomic_write import write_file

REPORT_NAME = "report.json"


@dataclass(frozen=True)
class Findings:
    """What a search has found, and what the report needs to know."""

    duplicates: Duplicates
    text_field: str
    ledger_path: Path  # of the first pipeline, which has counted the documents
    alarm_share: float
    near_misses: Sequence[tuple[int, int, float]] = ()  # documents that stay, what they are like, how similar
    texts_are_equal: bool = False

    def write(self, job: DedupJob, workflow: str) -> WorkflowRunResult:
        """Write the list and the report; return what a workflow's result says about them."""
        table = self.duplicates.to_table(job.source)
        path = write_duplicates(table, job.output_path)
        report = make_report(
            job,
            self.duplicates,
            table,
            text_field=self.text_field,
            ledger_path=self.ledger_path,
            alarm_share=self.alarm_share,
            near_misses=self.near_misses,
            texts_are_equal=self.texts_are_equal,
        )
        report_path = Path(job.output_path) / REPORT_NAME
        write_file(str(report_path), [json.dumps(report, indent=1, ensure_ascii=False).encode()])
        metadata = {
            "num_documents": report["documents"],
            "num_duplicates": len(self.duplicates),
            "duplicates_path": path,
            "report_path": str(report_path),
            "alarms": report["alarms"],
        }
        places = f"duplicates   {path}\nreport       {report_path}"
        summary = f"{describe(report, alarm_share=self.alarm_share)}\n\n{places}"
        return WorkflowRunResult(workflow, metadata=metadata, summary=summary)


def remove_found(
    job: DedupJob,
    found: Findings,
    result: WorkflowRunResult,
    write_kwargs: Mapping[str, object] | None = None,
    kept: Kept | None = None,
) -> None:
    """Write the documents that stay, and add to the result what became of them."""
    done = job.remove(found.duplicates.doc, write_kwargs, kept)
    result.add_pipeline_tasks("removal", done)
    result.extend_metadata({"num_kept": done.written, "quarantined": done.quarantined})
