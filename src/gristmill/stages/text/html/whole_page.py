"""`WholePage`: all visible text of a page, menus included, as lines or as Markdown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gristmill.errors import require
from gristmill.stages.text.download.html_extractors.base import EXTRA, HTMLExtractorAlgorithm, TreeExtractor
from gristmill.stages.text.html.markdown import to_markdown

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree


@dataclass
class WholePage(HTMLExtractorAlgorithm):
    """No search for main content: nothing that a reader sees is left out."""

    needs: ClassVar[tuple[str, ...]] = ("resiliparse",)

    markdown: bool = False

    @property
    def uses_stop_words(self) -> bool:
        return False

    def on_tree(self) -> TreeExtractor:
        return self

    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        del stop_words, language
        return self.paragraphs(require("resiliparse.parse.html", extra=EXTRA).HTMLTree.parse(html))

    def paragraphs(self, tree: "HTMLTree") -> list[str]:
        """Return the lines, or the blocks, of a page."""
        if self.markdown:
            return to_markdown(tree)
        text: str = require("resiliparse.extract.html2text", extra=EXTRA).extract_plain_text(tree, main_content=False)
        return [line for line in text.split("\n") if line.strip()]

    def choose(self, found: list[str], html: Callable[[], str], stop_words: frozenset[str], language: str) -> list[str]:
        """Return all of it."""
        del html, stop_words, language
        return found
