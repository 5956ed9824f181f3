"""`MathContentExtractor`: all text of a page, a notebook or a plain file, with its formulas as TeX.

`MathExtractStage` does it for documents that have the bytes in a column, as `CommonCrawlWARCReader` makes them. Neither
lynx nor libmagic is needed: no process is started for a page, and formulas are not flattened.
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.math.download.notebooks import notebook_text
from gristmill.stages.text.download.base import DocumentExtractor, Dropped
from gristmill.stages.text.download.base.iterator import _ExtractRecords, filename_column
from gristmill.stages.text.html import charset
from gristmill.stages.text.html.extract_html import EMPTY, TOO_LARGE, UNDECODABLE, PageOptions, PageReader
from gristmill.stages.text.html.mime import Kind, kind_of
from gristmill.stages.text.html.whole_page import WholePage
from gristmill.tasks import DocumentBatch, RecordBatch

Format = Literal["text", "markdown"]
_FORMATS = ("text", "markdown")
NOT_TEXT = "not_text"
REASONS = {NOT_TEXT: "The bytes are not text: an image, a PDF, an archive."}

# Types that crawlers and servers give to what a browser shows as a page, though its first bytes need not say so.
_PAGES = ("html", "xml", "php", "jsp", "asp", "coldfusion", "bibtex", "emlx")
_SURE = ("text/html", "application/xhtml+xml", "text/plain")
_MAGIC: dict[Kind, str] = {
    "html": "text/html",
    "text": "text/plain",
    "pdf": "application/pdf",
    "notebook": "application/json",
    "other": "application/octet-stream",
}


@dataclass(eq=False)
class MathContentExtractor(DocumentExtractor):
    """Columns `text`, the URL, `type` ("html", "text", "notebook") and `magic_mime_type`, from bytes in a column.

    `lynx_timeout_sec`  seconds that one page may take; the name is the one users know
    `output_format`     "markdown" keeps headings, lists, tables and blocks of code
    """

    batch_deadline_s: ClassVar[float | None] = 180.0
    declares_all_columns: ClassVar[bool] = True

    binary_column: str = "binary_content"
    url_column: str = "url"
    mime_type_column: str = "mime_type"
    lynx_timeout_sec: int = 20
    _: KW_ONLY
    output_format: Format = "text"
    limits: IngestLimits = field(default_factory=IngestLimits)

    def __post_init__(self) -> None:
        if self.output_format not in _FORMATS:
            raise ConfigError(
                f"MathContentExtractor: expected output_format to be one of {_FORMATS}; got {self.output_format!r}"
            )
        self.limits = replace(self.limits, page_s=self.lynx_timeout_sec)
        self._reader: PageReader | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}

    def input_columns(self) -> list[str]:
        return [self.binary_column, self.url_column, self.mime_type_column]

    def output_columns(self) -> list[str]:
        return ["text", self.url_column, "type", "magic_mime_type"]

    def check_ready(self) -> None:
        charset.check_ready()

    def setup(self) -> None:
        is_markdown = self.output_format == "markdown"
        options = PageOptions(self.limits, fences=is_markdown, language=False)
        self._reader = PageReader(WholePage(markdown=is_markdown), {}, options)

    def extract(self, record: dict[str, Any]) -> dict[str, Any] | Dropped | Quarantined | None:
        data = record.get(self.binary_column)
        if not isinstance(data, bytes | bytearray | memoryview) or not len(data):
            return Dropped(EMPTY)
        data = bytes(data)
        said = record.get(self.mime_type_column)
        kind = kind_of(data, content_type=said if said in _SURE else None)
        if kind in ("pdf", "other"):
            return Dropped(NOT_TEXT, _MAGIC[kind])
        made, text = self._text(data, kind, said, record.get(self.url_column))
        if not isinstance(text, str):
            return text
        if not text.strip():
            return Dropped(EMPTY)
        url = record.get(self.url_column)
        return {"text": text, self.url_column: url, "type": made, "magic_mime_type": _MAGIC[kind]}

    def _text(self, data: bytes, kind: Kind, mime_type: object, url: object) -> tuple[str, str | Dropped | Quarantined]:
        """What a record is, and its text."""
        if self._reader is None:
            self.setup()
        assert self._reader is not None  # noqa: S101
        if kind == "notebook" or (isinstance(url, str) and url.endswith(".ipynb")):
            text = self._within_size(data) or notebook_text(data, fences=self.output_format == "markdown")
            if text is not None:
                return "notebook", text
        if (kind == "text" or _is_source(mime_type)) and not _is_page(mime_type):
            decoded = self._within_size(data) or self._reader.decode(data)
            if decoded is None:
                return "text", Quarantined("expected text in some charset; none fits its bytes", UNDECODABLE)
            return "text", decoded
        page = self._reader.read(data)
        return "html", page if isinstance(page, Dropped | Quarantined) else self._joined(page.paragraphs)

    def _within_size(self, data: bytes) -> Dropped | None:
        most = self.limits.max_html_bytes
        return Dropped(TOO_LARGE, len(data), f"bytes ≤ {most}") if len(data) > most else None

    def _joined(self, paragraphs: list[str]) -> str:
        return ("\n\n" if self.output_format == "markdown" else "\n").join(paragraphs)


def _is_source(mime_type: object) -> bool:
    """Whether it is text that a person wrote for another program: TeX, source code, a log."""
    return isinstance(mime_type, str) and mime_type.lower().startswith(("text/x-", "application/x-tex"))


def _is_page(mime_type: object) -> bool:
    return isinstance(mime_type, str) and any(word in mime_type.lower() for word in _PAGES)


@dataclass(eq=False)
class MathExtractStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Apply an extractor to each row of a batch; what it leaves out is dropped with a reason.

    `add_filename_column`  True keeps the column `file_name`, where there is one; a text is the name of the column
    """

    fusible: ClassVar[bool] = False  # its deadline is for extracting

    extractor: DocumentExtractor
    add_filename_column: bool | str = False

    def __post_init__(self) -> None:
        self.name = f"extract_{type(self.extractor).__name__.lower()}"
        self.filename_col = filename_column(self.add_filename_column, who=self.name)

    @property
    def deadline_s(self) -> float | None:  # type: ignore[override]  # it is the extractor that knows
        return self.extractor.batch_deadline_s

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self.extractor.input_columns()

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [*self.extractor.output_columns(), *self._kept()]

    def columns(self) -> list[str] | None:
        return None

    def check_ready(self) -> None:
        self.extractor.check_ready()

    def setup(self, worker_metadata: object = None) -> None:
        self.extractor.setup()

    def process(self, task: DocumentBatch) -> DocumentBatch:
        kept = [name for name in self._kept() if task.has_column(name)]
        records = RecordBatch(task.dataset_name, task.to_pyarrow().to_pylist())
        records.task_id = task.task_id
        records.inherit(task)
        extracting = _ExtractRecords(self.extractor, kept)
        extracting.context = self.context
        return extracting.process(records)

    def _kept(self) -> list[str]:
        return [] if self.filename_col is None else [self.filename_col]
