"""`PdfExtractStage`: a column of PDFs to text; and the same as an extractor, for readers of files."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, StageError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import DocumentExtractor, Dropped
from gristmill.stages.text.download.base.extract import Extracted
from gristmill.stages.text.pdf.extract_pdf import PdfText, Read, check_ready
from gristmill.stages.text.pdf.pdf_process import PdfProcess
from gristmill.tasks import DocumentBatch

COLUMNS = ("num_pages", "scanned_share", "text_garbled_share")
_TYPES = {"num_pages": pa.int64(), "scanned_share": pa.float64(), "text_garbled_share": pa.float64()}


@dataclass(frozen=True)
class PdfOptions:
    """When a PDF is left for a model to read: too many pages are pictures, or too many characters have no meaning."""

    max_scanned_share: float = 0.5
    max_garbled_share: float = 0.2

    def __post_init__(self) -> None:
        for name in ("max_scanned_share", "max_garbled_share"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigError(f"PDF: expected {name} from 0 to 1; got {value!r}")

    def shares(self) -> dict[str, float]:
        return {"max_scanned_share": self.max_scanned_share, "max_garbled_share": self.max_garbled_share}


PATH = "path"  # a field for the extractor: which file a record is


class PdfExtractor(DocumentExtractor):
    """Makes a document of a record whose `content` is a PDF; other fields stay."""

    batch_deadline_s: ClassVar[float | None] = None  # every file has its own, which `PdfProcess` keeps

    def __init__(self, options: PdfOptions | None = None, limits: IngestLimits | None = None) -> None:
        self._options = options or PdfOptions()
        self._limits = limits or IngestLimits()
        self._process = PdfProcess()

    def input_columns(self) -> list[str]:
        return ["content"]

    def output_columns(self) -> list[str]:
        return ["text", *COLUMNS]

    def check_ready(self) -> None:
        check_ready()

    def extract(self, record: dict[str, Any]) -> Extracted:
        found = self._process.read(record["content"], self._limits, **self._options.shares())
        if isinstance(found, Quarantined):
            return replace(found, source=record.get(PATH, ""), extension=".pdf")
        if isinstance(found, Dropped):
            return found
        kept = {name: value for name, value in record.items() if name not in ("content", PATH)}
        return {"text": found.text, **{name: getattr(found, name) for name in COLUMNS}, **kept}


@dataclass(eq=False)
class PdfExtractStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Make text of the PDFs in a column of bytes, which is then left out.

    Adds text, num_pages, scanned_share and text_garbled_share. What needs a model to be read, is cut off, encrypted or
    too large is dropped by reason; a document that pdfium crashes or hangs on is quarantined alone.

    `truncated_column`   names a column that is true, or not empty, for PDFs a crawler has cut off: they are dropped
    """

    binary_column: str = "binary_content"
    max_scanned_share: float = 0.5
    max_garbled_share: float = 0.2
    text_column: str = field(default="text", kw_only=True)
    truncated_column: str | None = field(default=None, kw_only=True)
    limits: IngestLimits = field(default=IngestLimits(), kw_only=True)
    name: str = field(default="pdf_extract", kw_only=True)

    def __post_init__(self) -> None:
        self._options = PdfOptions(self.max_scanned_share, self.max_garbled_share)
        self._process = PdfProcess()

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.binary_column, *([self.truncated_column] if self.truncated_column else [])]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_column, *COLUMNS]

    def check_ready(self) -> None:
        check_ready()

    def process(self, task: DocumentBatch) -> DocumentBatch:
        found = [self._read(task, row) for row in range(task.num_items)]
        self._report(task, found)
        rows = [row for row, each in enumerate(found) if isinstance(each, PdfText)]
        texts = [each for each in found if isinstance(each, PdfText)]
        made = task.take(rows).drop_columns([self.binary_column])
        made = made.with_column(self.text_column, pa.array([each.text for each in texts], pa.string()))
        for name, kind in _TYPES.items():
            made = made.with_column(name, pa.array([getattr(each, name) for each in texts], kind))
        return made

    def _read(self, task: DocumentBatch, row: int) -> Read:
        if self.truncated_column is not None and task.column(self.truncated_column)[row].as_py():
            return Dropped("truncated")
        content = task.column(self.binary_column)[row].as_py()
        if content is None:
            return Dropped("not_pdf")
        if not isinstance(content, bytes):
            kind = type(content).__name__
            raise StageError(f"{self.stage_name()}: expected bytes in column {self.binary_column!r}; got {kind}")
        return self._process.read(content, self.limits, **self._options.shares())

    def teardown(self) -> None:
        self._process.close()

    def _report(self, task: DocumentBatch, found: list[Read]) -> None:
        whys = dict.fromkeys((each.reason, each.threshold) for each in found if isinstance(each, Dropped))
        for reason, threshold in whys:
            same = [
                isinstance(each, Dropped) and (each.reason, each.threshold) == (reason, threshold) for each in found
            ]
            values = [each.value if isinstance(each, Dropped) else None for each in found]
            self.context.drop(task, same, reason=reason, values=values if threshold else None, threshold=threshold)
        for row, each in enumerate(found):
            if isinstance(each, Quarantined):
                item = task.item(row)
                placed = replace(each, row=row, document_id=item.id, source=item.source, extension=".pdf")
                payload = task.column(self.binary_column)[row].as_py()
                self.context.quarantine(replace(placed, document=each.document or item.text, payload=payload))
