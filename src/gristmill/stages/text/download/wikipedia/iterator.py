"""`WikipediaIterator`: the articles of a dump as records, and why every other page is left out."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import quote

from gristmill.errors import ConfigError, nearest
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.io.splitting import Bz2Streams, Splitter
from gristmill.stages.text.download.base import DocumentIterator, Dropped, LeftOut
from gristmill.stages.text.download.base.iterator import Found
from gristmill.stages.text.download.wikipedia.dump import ARTICLES, Dump, Page, Site
from gristmill.stages.text.download.wikipedia.site_names import category_names, file_names
from gristmill.tasks import FileSlice

REDIRECT, OTHER_NAMESPACE, OTHER_MODEL, EMPTY = "redirect", "other_namespace", "other_model", "empty"
REASONS = {
    REDIRECT: "The page redirects to another one.",
    OTHER_NAMESPACE: "The page is not an article: a talk page, a template, a category.",
    OTHER_MODEL: "The page is not wikitext.",
    EMPTY: "The page has no text, or none is left of it.",
}
"""Why pages are left out: they point to another one, are not articles, are not wikitext, have no text."""

NAMES = "namespace_names"  # other names of files and categories, in records of wikis whose names are not all known
_EXTRA = ("revision_id", "timestamp")


class WikipediaIterator(DocumentIterator):
    """Yields title, id, url, language, source_id and raw_content of each article.

    `language` None takes it from the dump. `extra` may name "revision_id" and "timestamp", which become fields too.
    `log_frequency` is accepted without effect: progress is shown by the run.
    """

    split: ClassVar[Splitter] = Bz2Streams()
    block_bytes: ClassVar[int] = 16 * 1024**2  # of bzip2: 70 MB of XML, which take a core some seconds

    def __init__(
        self,
        language: str | None = "en",
        log_frequency: int = 1000,
        *,
        extra: Sequence[str] = (),
        limits: IngestLimits | None = None,
    ) -> None:
        for name in extra:
            if name not in _EXTRA:
                raise ConfigError(f"WikipediaIterator: expected extra of {_EXTRA}; got {name!r}{nearest(name, _EXTRA)}")
        self._language = language
        self._log_frequency = log_frequency
        self._extra = tuple(extra)
        self._limits = limits or IngestLimits()

    def output_columns(self) -> list[str]:
        return ["title", "id", "url", "language", "source_id", "raw_content", *self._extra]

    def iterate(self, file_path: str) -> Iterator[dict[str, Any]]:
        """Yield the articles of a whole dump, and nothing about other pages."""
        for found in self.iterate_part(FileSlice(file_path)):
            if isinstance(found, dict):
                yield {name: found[name] for name in self.output_columns()}

    def iterate_part(self, part: FileSlice) -> Iterator[Found]:
        dump = Dump(part, self._limits.max_wiki_bytes)
        source = part.path.rpartition("/")[2]
        names: dict[str, Any] | None = None
        for page in dump.pages():
            if isinstance(page, Quarantined):
                yield page
                continue
            if names is None:
                names = self._names(dump.site)
            language = self._language or dump.site.language
            record = {
                "title": page.title,
                "id": page.id,
                "url": self._address(dump.site, language) + quote(page.title),
                "language": language,
                "source_id": source,
                "raw_content": page.text,
                **{name: getattr(page, name) for name in self._extra},
            }
            why = _why_left_out(page)
            yield record | names if why is None else LeftOut(record, Dropped(why))

    def _address(self, site: Site, language: str) -> str:
        """What stands before a title: as asked for, or as the dump says if it is of a wiki other than Wikipedia."""
        if self._language is None and site.base and not site.database.endswith("wiki"):
            return site.base.rpartition("/")[0] + "/"
        return f"https://{language}.wikipedia.org/wiki/"

    def _names(self, site: Site) -> dict[str, Any]:
        language = self._language or site.language
        files = tuple(name for name in site.files if name not in file_names(language))
        categories = tuple(name for name in site.categories if name not in category_names(language))
        return {NAMES: (files, categories)} if files or categories else {}


def _why_left_out(page: Page) -> str | None:
    if page.namespace != ARTICLES:
        return OTHER_NAMESPACE
    if page.is_redirect or (page.text is not None and page.text[:9].upper() == "#REDIRECT"):
        return REDIRECT
    if page.model not in ("", "wikitext"):
        return OTHER_MODEL
    return None if page.text and not page.text.isspace() else EMPTY
