"""`ArxivExtractor`: the TeX files of a paper to one text, or what NeMo Curator makes of them."""

from typing import Any, ClassVar

from gristmill.errors import TimeLimitExceeded
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.arxiv.as_nemo_curator import as_nemo_curator
from gristmill.stages.text.download.arxiv.iterator import NAMES, STYLES
from gristmill.stages.text.download.arxiv.tex_assembly import assemble
from gristmill.stages.text.download.arxiv.tex_project import TexProject
from gristmill.stages.text.download.base import DocumentExtractor, Dropped
from gristmill.stages.text.download.base.extract import Extracted
from gristmill.stages.time_limit import time_limit

EMPTY = "empty"
TIME_LIMIT = "time_limit"

REASONS = {EMPTY: "No text is left of the paper."}
KINDS = {TIME_LIMIT: "Putting the paper together took longer than `paper_s`."}


class ArxivExtractor(DocumentExtractor):
    """Makes a document of a paper: text, id, source_id, title and abstract; with `compat` the text alone."""

    declares_all_columns: ClassVar[bool] = True
    batch_records: ClassVar[int] = 256

    def __init__(self, *, compat: bool = False, limits: IngestLimits | None = None) -> None:
        self._compat = compat
        self._limits = limits or IngestLimits()

    def input_columns(self) -> list[str]:
        return ["id", "source_id", "content"]

    def output_columns(self) -> list[str]:
        return ["text"] if self._compat else ["text", "id", "source_id", "title", "abstract"]

    def extract(self, record: dict[str, Any]) -> Extracted:
        try:
            return time_limit(self._limits.paper_s, self._extract, record)
        except TimeLimitExceeded as error:
            return Quarantined(str(error), TIME_LIMIT)

    def _extract(self, record: dict[str, Any]) -> Extracted:
        files = list(record.get("content") or ())
        if self._compat:
            text = as_nemo_curator(files) if files else None
            return Dropped(EMPTY) if text is None else {"text": text}
        names = record.get(NAMES) or [f"{number:04d}.tex" for number in range(len(files))]
        paper = assemble(TexProject(dict(zip(names, files, strict=True)), record.get(STYLES)), self._limits)
        if paper is None or not paper.text:
            return Dropped(EMPTY)
        kept = {"id": record.get("id"), "source_id": record.get("source_id")}
        return {"text": paper.text, **kept, "title": paper.title, "abstract": paper.abstract}
