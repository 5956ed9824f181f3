"""What every deduplication leaves for its user: `duplicates.parquet` and `report.json`."""

import json
from collections.abc import Sequence
from pathlib import Path

from gristmill.workflows.deduplication.dedup_input import DedupInput
from gristmill.workflows.deduplication.duplicates_table import Duplicates, write_duplicates
from gristmill.workflows.deduplication.report import make_report

REPORT_NAME = "report.json"


def write_findings(
    source: DedupInput,
    duplicates: Duplicates,
    output_path: str,
    *,
    text_field: str,
    ledger_path: Path,
    alarm_share: float,
    near_misses: Sequence[tuple[int, int, float]] = (),
) -> dict[str, object]:
    """Write both files; return what a workflow's result says about them."""
    table = duplicates.to_table(source)
    path = write_duplicates(table, output_path)
    report = make_report(
        source,
        duplicates,
        table,
        text_field=text_field,
        ledger_path=ledger_path,
        alarm_share=alarm_share,
        near_misses=near_misses,
    )
    report_path = Path(output_path) / REPORT_NAME
    temporary = report_path.with_name(f".{REPORT_NAME}.tmp")
    temporary.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    temporary.replace(report_path)
    return {
        "num_documents": report["documents"],
        "num_duplicates": len(duplicates),
        "duplicates_path": path,
        "report_path": str(report_path),
        "alarms": report["alarms"],
    }
