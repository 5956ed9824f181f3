"""What every deduplication leaves for its user: `duplicates.parquet` and `report.json`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.deduplication.report import Duplicates, describe, make_report, write_duplicates
from gristmill.deduplication.searched_documents import SearchedDocuments
from gristmill.storage.atomic_write import write_file

REPORT_NAME = "report.json"


@dataclass(frozen=True)
class Findings:
    """What a search has found, and what the report needs to know."""

    duplicates: Duplicates
    text_field: str
    counted_by: tuple[str, str]  # the step and the stage of it that every document has come to
    near_misses: Sequence[tuple[int, int, float]] = ()  # documents that stay, what they are like, how similar
    texts_are_equal: bool = False
    warnings: Sequence[str] = ()
    about: Mapping[str, object] = field(default_factory=dict)  # what else is worth knowing about the search

    def write(self, documents: SearchedDocuments, home: Path, *, alarm_share: float) -> dict[str, object]:
        """Write the list and the report; return what is to be told about them."""
        table = self.duplicates.to_table(documents)
        path = write_duplicates(table, home)
        report = make_report(
            documents,
            self.duplicates,
            table,
            text_field=self.text_field,
            read=documents.num_read(*self.counted_by),
            alarm_share=alarm_share,
            near_misses=self.near_misses,
            texts_are_equal=self.texts_are_equal,
        )
        report_path = home / REPORT_NAME
        write_file(str(report_path), [json.dumps(report, indent=1, ensure_ascii=False).encode()])
        return {
            "num_documents": report["documents"],
            "num_duplicates": len(self.duplicates),
            "duplicates_path": path,
            "report_path": str(report_path),
            "alarms": report["alarms"],
            **self.about,
            "warnings": list(self.warnings),
            "summary": describe(report, alarm_share=alarm_share),
        }
