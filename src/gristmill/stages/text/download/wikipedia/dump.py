"""The pages of a MediaWiki dump, or of any part of one.

A dump is XML: `<mediawiki>`, `<siteinfo>`, then one `<page>` after another. A page belongs to the part that its
`<page>` begins in: for bzip2 that is the part in which the stream begins. So pages may run from one stream into the
next, as they do in files of compressors that know nothing of pages, and each is read once, wherever the file was cut. A
page is parsed alone: what is wrong with one costs only that page.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.errors import DamagedFile
from gristmill.stages.context import Quarantined
from gristmill.stages.io.files import lost_part, planned
from gristmill.storage.bz2_streams import Damage, Piece, read_streams
from gristmill.storage.open_read import InputFile
from gristmill.storage.paths import is_compressed
from gristmill.tasks import FileSlice

DAMAGED, BROKEN_PAGE, TOO_LARGE = "damaged", "broken_page", "too_large"
KINDS = {
    DAMAGED: "A part of the dump cannot be decompressed; reading goes on after it.",
    BROKEN_PAGE: "The XML of the page is not that of a page.",
    TOO_LARGE: "The page has more than `max_wiki_bytes`.",
}
"""Kinds of quarantined pages and parts of dumps."""

_BEGIN, _END, _LAST = b"<page>", b"</page>", b"</mediawiki>"
_HEAD_BYTES = 1 << 20
_PLAIN_BYTES = 1 << 20
_SHOWN_BYTES = 1000
ARTICLES = "0"  # the namespace of articles
_FILE, _MEDIA, _CATEGORY = "6", "-2", "14"


@dataclass(frozen=True)
class Page:
    """One page. `text` is None where the dump has none: its author or an administrator has removed it."""

    title: str
    namespace: str
    id: str
    is_redirect: bool
    revision_id: str
    timestamp: str
    model: str
    text: str | None


@dataclass(frozen=True)
class Site:
    """What a dump says about itself: what it calls files and media, categories, and all its namespaces."""

    database: str = ""
    base: str = ""
    files: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    prefixes: frozenset[str] = frozenset()

    @property
    def language(self) -> str:
        """The code of the language, "" if the dump does not say it.

        >>> Site("zh_min_nanwiki").language
        'zh-min-nan'
        """
        for project in ("wiki", "wiktionary", "wikibooks", "wikiquote", "wikisource", "wikivoyage", "wikinews"):
            if self.database.endswith(project):
                return self.database.removesuffix(project).replace("_", "-")
        return ""


def read_site(content: bytes) -> Site | None:
    """Return what the beginning of a dump says, or None if it is not a dump."""
    if b"<mediawiki" not in content:
        return None
    begin, end = content.find(b"<siteinfo>"), content.find(b"</siteinfo>")
    if begin < 0 or end < begin:
        return Site()
    try:
        info = ET.fromstring(content[begin : end + len(b"</siteinfo>")])  # noqa: S314  # expat limits entities
    except ET.ParseError:
        return Site()
    spaces = {space.get("key", ""): space.text for space in info.iter("namespace") if space.text}
    return Site(
        database=info.findtext("dbname") or "",
        base=info.findtext("base") or "",
        files=tuple(spaces[key] for key in (_FILE, _MEDIA) if key in spaces),
        categories=tuple(spaces[key] for key in (_CATEGORY,) if key in spaces),
        prefixes=frozenset(spaces.values()),
    )


class Dump:
    """A dump, or a part of one, while it is read."""

    def __init__(self, part: FileSlice, max_page_bytes: int) -> None:
        self._part = part
        self._start, self._stop = (0, part.file_size) if part.part is None else part.part
        self._most = max_page_bytes
        self.site = Site()

    def pages(self) -> Iterator[Page | Quarantined]:
        """Yield the pages in order, and between them what could not be read."""
        with InputFile(self._part.path, planned=planned(self._part)) as file:
            stop = self._stop or file.size
            site = read_site(_beginning(self._part.path))
            if site is None:
                if self._start == 0:
                    yield self._damage(0, "<mediawiki>", "none in its first megabyte", file.size)
                return
            self.site = site
            cutter = _Cutter(_pieces(file, self._start, stop), stop, self._most)
            for found in cutter.pages():
                if isinstance(found, Damage):
                    yield self._damage(found.start, "a whole bzip2 stream", found.problem, found.end - found.start)
                else:
                    yield self._parsed(found)
            if cutter.damage is not None:
                yield lost_part(cutter.damage, self._part.path)
            elif cutter.is_cut and not _ends_as_text(file):
                yield self._damage(cutter.stream, "</mediawiki> at its end", "none: it may have been cut", cutter.rest)

    def _parsed(self, found: "_Content") -> Page | Quarantined:
        shown = found.content[:_SHOWN_BYTES].decode("utf-8", "replace")
        if found.num_bytes > self._most:
            error = f"expected a page of at most {self._most:,} bytes; got {found.num_bytes:,}"
            return Quarantined(error, TOO_LARGE, shown, source=self._part.path, block_start=found.stream)
        try:
            return parse_page(found.content, self.site)
        except ValueError as error:
            return Quarantined(str(error), BROKEN_PAGE, shown, source=self._part.path, block_start=found.stream)

    def _damage(self, position: int, expected: str, got: str, lost_bytes: int) -> Quarantined:
        error = f"{self._part.path}, byte {position:,}: expected {expected}; got {got}"
        return Quarantined(
            error, DAMAGED, source=self._part.path, block_start=position, num_documents=0, lost_bytes=max(1, lost_bytes)
        )


def parse_page(content: bytes, site: Site) -> Page:
    """Return a page; raise ValueError if it is not one."""
    try:
        page = ET.fromstring(content)  # noqa: S314  # a page has no document type, so it defines no entities
    except ET.ParseError as error:
        raise ValueError(f"expected a page in XML; got {error}") from error
    title, namespace, number = page.findtext("title"), page.findtext("ns"), page.findtext("id")
    if title is None or not number:
        raise ValueError(f"expected a page with a title and an id; got {title!r} and {number!r}")
    if namespace is None:  # in dumps from before 2012: articles are the pages without a prefix
        namespace = "" if title.partition(":")[0] in site.prefixes and ":" in title else ARTICLES
    revision = page.find("revision")
    found = None if revision is None else revision.find("text")
    return Page(
        title=title,
        namespace=namespace,
        id=number,
        is_redirect=page.find("redirect") is not None,
        revision_id=_text(revision, "id"),
        timestamp=_text(revision, "timestamp"),
        model=_text(revision, "model"),
        text=None if found is None else found.text,
    )


def _text(element: ET.Element | None, name: str) -> str:
    return "" if element is None else element.findtext(name) or ""


class _Content(NamedTuple):
    """The bytes of a page; of one that is too large only the first of them, but their full number."""

    stream: int
    content: bytes
    num_bytes: int


class _Cutter:
    """Finds pages in content that comes in pieces, and holds no more of it than one page."""

    def __init__(self, pieces: Iterator[Piece | Damage], stop: int, max_page_bytes: int) -> None:
        self._pieces = pieces
        self._stop = stop
        self._most = max_page_bytes
        self._held = bytearray()
        self._in_page = False
        self._skipped = 0  # bytes of a page that is too large
        self._has_ended = False
        self.stream = 0
        self.is_cut = False  # all was read, and nothing says that this is the end
        self.damage: DamagedFile | None = None

    @property
    def rest(self) -> int:
        """Bytes of a page whose end has not come."""
        return len(self._held) + self._skipped if self._in_page else 0

    def pages(self) -> Iterator[_Content | Damage]:
        owns_any = False
        try:
            for piece in self._pieces:
                if isinstance(piece, Damage):
                    if piece.owner < self._stop:
                        yield piece
                    # What follows damage is not the rest of what came before it.
                    self._held, self._in_page, self._skipped = bytearray(), False, 0
                    self._has_ended = True  # whatever is missing is on record
                    continue
                if piece.stream >= self._stop and not self._held:
                    return
                owns_any = True
                yield from self._take(piece)
        except DamagedFile as error:
            self.damage = error
            return
        self.is_cut = owns_any and not self._has_ended

    def _take(self, piece: Piece) -> Iterator[_Content]:
        before = len(self._held)  # bytes of a tag that may have begun in another stream
        self._held += piece.content
        while True:
            if not self._in_page:
                begin = self._held.find(_BEGIN)
                is_owned = begin >= 0 and (piece.stream < self._stop or begin < before)
                if not is_owned:
                    self._keep_end_of_tag()
                    return
                if begin >= before:
                    self.stream = piece.stream
                del self._held[:begin]
                before = 0
                self._in_page, self._has_ended = True, False
            end = self._held.find(_END, max(0, before - len(_END)))
            if end < 0:
                self._pass_over()
                return
            size = end + len(_END) + self._skipped
            yield _Content(self.stream, bytes(self._held[: end + len(_END)]), size)
            del self._held[: end + len(_END)]
            before, self._in_page, self._skipped = 0, False, 0

    def _keep_end_of_tag(self) -> None:
        """Between pages: keep what may be the beginning of a tag, no more."""
        self._has_ended = self._has_ended or _LAST in self._held
        begun = (n for tag in (_LAST, _BEGIN) for n in range(len(tag) - 1, 0, -1) if self._held.endswith(tag[:n]))
        del self._held[: len(self._held) - next(begun, 0)]

    def _pass_over(self) -> None:
        """Within a page that is too large: keep its first bytes to show, and what may be the beginning of its end."""
        gone = len(self._held) - _SHOWN_BYTES - len(_END)
        if len(self._held) > self._most and gone > 0:
            del self._held[_SHOWN_BYTES : _SHOWN_BYTES + gone]
            self._skipped += gone


def _beginning(path: str) -> bytes:
    """The first bytes of the content, decompressed: they describe the whole."""
    content = b""
    try:
        with InputFile(path) as file:
            for piece in _pieces(file, 0, file.size):
                if isinstance(piece, Damage):
                    break
                content += piece.content
                if len(content) >= _HEAD_BYTES or b"</siteinfo>" in content:
                    break
    except DamagedFile:
        pass  # the reader of the first part puts it on record
    return content


def _ends_as_text(file: InputFile) -> bool:
    """Whether the last bytes of a plain file are those of a dump: a part may begin in the middle of them."""
    return not is_compressed(file.path) and _LAST in bytes(
        memoryview(file.read_range(max(0, file.size - 64), file.size))
    )


def _pieces(file: InputFile, start: int, stop: int) -> Iterator[Piece | Damage]:
    """The content from `start` on, with the place in the file that decides who owns it; it goes on past `stop`."""
    if file.path.endswith(".bz2"):
        yield from read_streams(file, start, stop)
    elif is_compressed(file.path):
        for content in file.pieces():
            yield Piece(0, content)
    else:
        position = start
        while position < file.size:
            end = min(position + _PLAIN_BYTES, stop if position < stop else file.size)
            yield Piece(position, bytes(memoryview(file.read_range(position, end))))
            position = end
