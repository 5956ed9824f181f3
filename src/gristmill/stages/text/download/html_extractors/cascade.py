"""`CascadeExtractor`: a quick extractor for all pages, and a careful one where the quick one did badly."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError, StageError
from gristmill.stages.text.download.html_extractors.base import HTMLExtractorAlgorithm, TreeExtractor
from gristmill.stages.text.download.html_extractors.resiliparse import ResiliparseExtractor
from gristmill.stages.text.download.html_extractors.trafilatura import TrafilaturaExtractor

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree

SHORT_LINE_CHARS = 60


class CascadeExtractor(HTMLExtractorAlgorithm):
    """Resiliparse, and trafilatura where much of what resiliparse found is in short lines.

    Menus, lists of links and captions are short lines; sentences are long ones. Where lines under 60 characters hold
    more than `short_line_share` of the first extractor's text, the page goes through the second as well, whose text is
    taken unless it is empty. Neither uses stop words, unless other extractors are given (ADR 0056).
    """

    def __init__(
        self,
        first: HTMLExtractorAlgorithm | None = None,
        then: HTMLExtractorAlgorithm | None = None,
        short_line_share: float = 0.15,
    ) -> None:
        if not 0 <= short_line_share <= 1:
            raise ConfigError(f"CascadeExtractor: expected short_line_share between 0 and 1; got {short_line_share!r}")
        self.first = ResiliparseExtractor(required_stopword_density=0) if first is None else first
        if then is None:
            wanted = {"favor_precision": True, "include_comments": False, "deduplicate": False}
            then = TrafilaturaExtractor(required_stopword_density=0, **wanted)
        self.then = then
        self.short_line_share = short_line_share

    @property
    def uses_stop_words(self) -> bool:
        return self.first.uses_stop_words or self.then.uses_stop_words

    def check_ready(self) -> None:
        self.first.check_ready()
        self.then.check_ready()

    def setup(self) -> None:
        self.first.setup()
        self.then.setup()

    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        found = self.first.extract_text(html, stop_words, language)
        return self._reconsidered(found, lambda: html, stop_words, language)

    def on_tree(self) -> TreeExtractor | None:
        return None if self.first.on_tree() is None else self

    def paragraphs(self, tree: "HTMLTree") -> list[str]:
        """Return what the first finds."""
        return self._first_on_tree().paragraphs(tree)

    def choose(
        self, found: list[str], html: Callable[[], str], stop_words: frozenset[str], language: str
    ) -> list[str] | None:
        """Return the good part of what the first found, or what the second finds."""
        chosen = self._first_on_tree().choose(found, html, stop_words, language)
        return self._reconsidered(chosen, html, stop_words, language)

    def _first_on_tree(self) -> TreeExtractor:
        on_tree = self.first.on_tree()
        if on_tree is None:
            raise StageError("CascadeExtractor: expected its first extractor to work on trees; it does not")
        return on_tree

    def _reconsidered(
        self, found: list[str] | None, html: Callable[[], str], stop_words: frozenset[str], language: str
    ) -> list[str] | None:
        if found and short_line_share(found) <= self.short_line_share:
            return found
        return self.then.extract_text(html(), stop_words, language) or found


def short_line_share(paragraphs: Sequence[str]) -> float:
    """Return which share of the characters is in lines under 60 characters."""
    lengths = [len(line.strip()) for paragraph in paragraphs for line in paragraph.split("\n")]
    total = sum(lengths)
    return sum(length for length in lengths if length < SHORT_LINE_CHARS) / total if total else 0.0
