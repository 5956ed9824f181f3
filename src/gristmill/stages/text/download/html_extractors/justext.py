"""`JusTextExtractor`: paragraphs that are sentences, by jusText's rules (Pomikálek, 2011).

The library takes pages apart; paragraphs are classified here, by the same rules, in time that grows with the page: the
library searches for the neighbours of each paragraph, which takes hours for a table of 50,000 cells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import ClassVar, NamedTuple, Protocol

from gristmill.errors import require
from gristmill.stages.text.download.html_extractors.base import EXTRA, HTMLExtractorAlgorithm

GOOD, BAD, SHORT, NEAR_GOOD = "good", "bad", "short", "neargood"


class _Paragraph(Protocol):
    """A paragraph as the library makes it."""

    text: str
    dom_path: str
    chars_count_in_links: int
    is_heading: bool


class _Block(NamedTuple):
    """What decides about a paragraph."""

    text: str
    kind: str  # by itself, without its neighbours
    is_heading: bool


@dataclass
class JusTextExtractor(HTMLExtractorAlgorithm):
    """Paragraphs that jusText takes for good, by length, stop words, links and neighbours.

    `length_low`, `length_high`        characters: below the first a paragraph is too short to be judged by itself
    `stopwords_low`, `stopwords_high`  shares of stop words: below the first it is bad, from the second on good
    `max_link_density`                 share of characters in links: above, it is bad
    `max_heading_distance`             characters between a heading and the first good paragraph after it
    `no_headings`                      headings are judged like paragraphs
    `is_boilerplate`                   False keeps every paragraph. None: only where words have no spaces between them
    """

    needs: ClassVar[tuple[str, ...]] = ("justext", "lxml_html_clean")
    deepest_page: ClassVar[int] = 250  # libxml2 gives up at 256, and the rest of the page is silently lost

    length_low: int = 70
    length_high: int = 200
    stopwords_low: float = 0.30
    stopwords_high: float = 0.32
    max_link_density: float = 0.2
    max_heading_distance: int = 200
    no_headings: bool = False
    is_boilerplate: bool | None = None

    def setup(self) -> None:
        _library()

    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        paragraphs = _paragraphs(html)
        judges = self.is_spaced(language) if self.is_boilerplate is None else self.is_boilerplate
        if not judges:
            return [paragraph.text for paragraph in paragraphs]
        stop_list = _library().define_stoplist(stop_words)
        blocks = [self._block(paragraph, stop_list) for paragraph in paragraphs]
        kinds = revised_kinds(blocks, self.max_heading_distance)
        return [block.text for block, kind in zip(blocks, kinds, strict=True) if kind == GOOD]

    def _block(self, paragraph: _Paragraph, stop_words: frozenset[str]) -> _Block:
        text = paragraph.text  # put together again whenever it is asked for
        words = text.split()
        density = sum(word.lower() in stop_words for word in words) / len(words) if words else 0.0
        kind = self._kind(text, density, paragraph)
        return _Block(text, kind, not self.no_headings and paragraph.is_heading)

    def _kind(self, text: str, density: float, paragraph: _Paragraph) -> str:
        length, in_links = len(text), paragraph.chars_count_in_links
        if length and in_links / length > self.max_link_density:
            return BAD
        if "©" in text or "&copy" in text or "select" in paragraph.dom_path:
            return BAD
        if length < self.length_low:
            return BAD if in_links > 0 else SHORT
        if density >= self.stopwords_high:
            return GOOD if length > self.length_high else NEAR_GOOD
        return NEAR_GOOD if density >= self.stopwords_low else BAD


def _paragraphs(html: str) -> list[_Paragraph]:
    library = _library()
    parser_error = require("lxml.etree", extra=EXTRA).ParserError
    try:
        page = library.preprocessor(library.html_to_dom(html))
    except parser_error:  # "Document is empty": a page without an element
        return []
    paragraphs: list[_Paragraph] = library.ParagraphMaker.make_paragraphs(page)
    return paragraphs


@cache
def _library() -> ModuleType:
    require("lxml_html_clean", extra=EXTRA)  # jusText says something else if it is missing
    return require("justext.core", extra=EXTRA)


def revised_kinds(blocks: Sequence[_Block], max_heading_distance: int) -> list[str]:
    """Return the kind of each block, given its neighbours."""
    kinds = [block.kind for block in blocks]
    near_heading = _near_good(blocks, kinds, max_heading_distance)
    for row, block in enumerate(blocks):
        if block.is_heading and block.kind == SHORT and near_heading[row]:
            kinds[row] = NEAR_GOOD
    kinds = _without_short(kinds)
    before, behind = BAD, _following(kinds, (GOOD, BAD))
    for row, kind in enumerate(kinds):
        if kind == NEAR_GOOD:  # what was near good before it is decided already; what follows is not
            kinds[row] = BAD if before == behind[row] == BAD else GOOD
        before = kinds[row]
    near_heading = _near_good(blocks, kinds, max_heading_distance)
    for row, block in enumerate(blocks):
        if block.is_heading and kinds[row] == BAD and block.kind != BAD and near_heading[row]:
            kinds[row] = GOOD
    return kinds


def _without_short(kinds: Sequence[str]) -> list[str]:
    """Short blocks become what stands on both sides; between good and bad, a near good neighbour decides."""
    before, behind = _preceding(kinds, (GOOD, BAD)), _following(kinds, (GOOD, BAD))
    near_before, near_behind = _preceding(kinds, (GOOD, BAD, NEAR_GOOD)), _following(kinds, (GOOD, BAD, NEAR_GOOD))
    made = list(kinds)
    for row, kind in enumerate(kinds):
        if kind != SHORT:
            continue
        if before[row] == behind[row]:
            made[row] = before[row]
        else:
            near = near_before[row] if before[row] == BAD else near_behind[row]
            made[row] = GOOD if near == NEAR_GOOD else BAD
    return made


def _preceding(kinds: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The nearest of some kinds before each block; beyond the ends everything is bad."""
    found, last = [], BAD
    for kind in kinds:
        found.append(last)
        last = kind if kind in wanted else last
    return found


def _following(kinds: Sequence[str], wanted: Iterable[str]) -> list[str]:
    return _preceding(kinds[::-1], wanted)[::-1]


def _near_good(blocks: Sequence[_Block], kinds: Sequence[str], max_chars: int) -> list[bool]:
    """Whether a good block follows each one with no more than `max_chars` characters between them."""
    near, chars, any_good = [False] * len(blocks), 0, False
    for row in range(len(blocks) - 1, -1, -1):
        near[row] = any_good and chars <= max_chars
        chars = 0 if kinds[row] == GOOD else chars + len(blocks[row].text)
        any_good = any_good or kinds[row] == GOOD
    return near
