"""`ResiliparseExtractor`: main content by resiliparse's rules, in C: the fastest there is."""

from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, cast

from gristmill.errors import require
from gristmill.stages.text.download.html_extractors.base import (
    EXTRA,
    HTMLExtractorAlgorithm,
    TreeExtractor,
    keep_by_stop_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from resiliparse.parse.html import HTMLTree


@dataclass
class ResiliparseExtractor(HTMLExtractorAlgorithm):
    """Resiliparse's main content; only paragraphs (lines) with enough stop words are kept.

    `required_stopword_density`  share of stop words that a paragraph needs, where words have spaces between them. 0
                                 keeps all: the rule costs 11 to 15 points of word-F1 (docs/guide/html.md)
    `main_content`               False takes all visible text
    `alt_texts`                  also the texts that images have in their `alt`
    `casefold`                   compare stop words without regard to case
    """

    needs: ClassVar[tuple[str, ...]] = ("resiliparse",)
    is_quick: ClassVar[bool] = True

    required_stopword_density: float = 0.32
    main_content: bool = True
    alt_texts: bool = False
    _: KW_ONLY
    casefold: bool = False

    @property
    def uses_stop_words(self) -> bool:
        return self.required_stopword_density > 0

    def setup(self) -> None:
        _plain_text()

    def on_tree(self) -> TreeExtractor:
        return self

    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        return self.choose(self.paragraphs(html), lambda: html, stop_words, language)

    def paragraphs(self, html: "str | HTMLTree") -> list[str]:
        """Return what resiliparse finds, given a page or its tree."""
        text = _plain_text()(html, main_content=self.main_content, alt_texts=self.alt_texts)
        return [line for line in text.split("\n") if line]

    def choose(
        self, found: list[str], html: "Callable[[], str]", stop_words: frozenset[str], language: str
    ) -> list[str]:
        """Return the paragraphs that have enough stop words."""
        del html
        if not self.is_spaced(language):
            return found
        return keep_by_stop_words(found, stop_words, self.required_stopword_density, casefold=self.casefold)


@cache
def _plain_text() -> "Callable[..., str]":
    return cast("Callable[..., str]", require("resiliparse.extract.html2text", extra=EXTRA).extract_plain_text)
