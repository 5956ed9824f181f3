"""`WikipediaExtractor`: wikitext to text, by the scanner or exactly as NeMo Curator does it, with mwparserfromhell."""

import contextlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from gristmill.errors import ConfigError, TimeLimitExceeded, check_installed, nearest, require
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import DocumentExtractor, Dropped
from gristmill.stages.text.download.base.extract import Extracted
from gristmill.stages.text.download.wikipedia.iterator import EMPTY, NAMES
from gristmill.stages.text.download.wikipedia.scanner import scanner_for
from gristmill.stages.text.download.wikipedia.site_names import category_names, file_names
from gristmill.stages.time_limit import time_limit

if TYPE_CHECKING:
    from mwparserfromhell.wikicode import Wikicode

Parser = Literal["scanner", "mwparserfromhell"]
Keep = Literal["keep", "drop"]

TIME_LIMIT = "time_limit"
KINDS = {TIME_LIMIT: "mwparserfromhell took longer than `page_s` for the page."}
"""The kind of a quarantined article that mwparserfromhell did not finish in time."""

_COPIED = ("title", "id", "url", "language", "source_id")
_CHOICES = {"parser": ("scanner", "mwparserfromhell"), "math": ("keep", "drop"), "tables": ("keep", "drop")}
_MAGIC_WORD = re.compile("__[A-Z]*__")
_REMOVED_TAGS = {"ref", "table"}


class WikipediaExtractor(DocumentExtractor):
    """Makes a document of an article.

    `parser`  "scanner": formulas are kept as `math` says, tables as `tables` says, files, categories and headings
              without text are left out. "mwparserfromhell": the text NeMo Curator gives, at a hundredth of the speed;
              needs the extra `wikipedia`
    """

    declares_all_columns: ClassVar[bool] = True
    batch_records: ClassVar[int] = 2048  # articles are short, and a batch becomes a file

    def __init__(
        self,
        language: str | None = "en",
        *,
        parser: Parser = "scanner",
        math: Keep = "keep",
        tables: Keep = "drop",
        extra: tuple[str, ...] = (),
        limits: IngestLimits | None = None,
    ) -> None:
        for option, given in (("parser", parser), ("math", math), ("tables", tables)):
            known = _CHOICES[option]
            if given not in known:
                close = nearest(str(given), known)
                raise ConfigError(f"WikipediaExtractor: expected {option} of {known}; got {given!r}{close}")
        self._language = language
        self._parser = parser
        self._math, self._tables = math, tables
        self._extra = tuple(extra)
        self._limits = limits or IngestLimits()

    @property
    def is_quick(self) -> bool:
        return self._parser == "scanner"

    def input_columns(self) -> list[str]:
        return [*_COPIED, "raw_content", *self._extra]

    def output_columns(self) -> list[str]:
        return ["text", *_COPIED, *self._extra]

    def check_ready(self) -> None:
        if self._parser == "mwparserfromhell":
            check_installed("mwparserfromhell", extra="wikipedia")

    def extract(self, record: dict[str, Any]) -> Extracted:
        raw = record.get("raw_content")
        if not raw:
            return Dropped(EMPTY)
        language = self._language or str(record.get("language") or "en")
        files, categories = record.get(NAMES) or ((), ())
        if self._parser == "scanner":
            keeps = {"math": self._math == "keep", "tables": self._tables == "keep"}
            depth = self._limits.max_template_depth
            text = scanner_for(language, **keeps, namespaces=(*files, *categories), max_depth=depth).clean(raw)
            if not text:
                return Dropped(EMPTY)
        else:
            try:
                text = time_limit(self._limits.page_s, as_nemo_curator, raw, language, files, categories)
            except TimeLimitExceeded as error:
                return Quarantined(str(error), TIME_LIMIT)
        return {"text": text, **{name: record[name] for name in (*_COPIED, *self._extra)}}


Names = tuple[str, ...]


def as_nemo_curator(wikitext: str, language: str, files: Names = (), categories: Names = ()) -> str:
    """Return the text NeMo Curator 1.4 makes of an article.

    Sections are cleaned one after another and joined by a blank line. Links to files are removed, and so are references
    and tables; links to categories lose their prefix. What mwparserfromhell cannot find again is left as it is.
    """
    is_file, is_category = _prefixes(language, tuple(files), tuple(categories))
    parsed: Wikicode = require("mwparserfromhell", extra="wikipedia").parse(wikitext)
    sections = parsed.get_sections(flat=True, include_lead=True, include_headings=True)
    return "\n\n".join(_section_text(section, is_file, is_category) for section in sections)


def _section_text(section: "Wikicode", is_file: re.Pattern[str], is_category: re.Pattern[str]) -> str:
    for link in section.ifilter_wikilinks(recursive=True):
        title = str(link.title)
        with contextlib.suppress(ValueError):  # one that was removed with a link around it
            if is_file.match(title):
                section.remove(link)
            elif is_category.match(title):
                link.text = is_category.sub("", str(link.__strip__()))
    for tag in section.ifilter_tags(matches=_is_removed, recursive=True):
        with contextlib.suppress(ValueError):
            section.remove(tag)
    return _MAGIC_WORD.sub("", section.strip_code().strip())


def _is_removed(tag: Any) -> bool:
    return str(tag.tag) in _REMOVED_TAGS


@cache
def _prefixes(language: str, files: Names, categories: Names) -> tuple[re.Pattern[str], re.Pattern[str]]:
    def pattern(prefixes: list[str]) -> re.Pattern[str]:
        return re.compile(f"^(?:{'|'.join(map(re.escape, prefixes))}):", re.IGNORECASE)

    return pattern([*file_names(language), *files]), pattern([*category_names(language), *categories])
