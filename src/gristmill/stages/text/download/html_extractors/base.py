"""`HTMLExtractorAlgorithm`: what finds the text of a page. Subclass it for another one.

An algorithm gets a page as text and returns paragraphs. Bytes, charsets, languages, limits, formulas and code are not
its business: `stages/text/html` sees to those for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar, Protocol

from gristmill.errors import check_installed

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree

EXTRA = "html"


class TreeExtractor(Protocol):
    """What works on a page that is parsed already, and finds paragraphs before it is told the language."""

    def paragraphs(self, tree: "HTMLTree", /) -> list[str]:
        """Return all it finds."""
        ...

    def choose(
        self, found: list[str], html: Callable[[], str], stop_words: frozenset[str], language: str
    ) -> list[str] | None:
        """Return the good part of it; `html` is the page as text, if it is needed again."""
        ...


class HTMLExtractorAlgorithm(ABC):
    """Subclass it and write `extract_text`.

    `needs`         packages of the extra `html` that it imports; a missing one is named before a run starts
    `deepest_page`  nested elements it can take: a deeper page becomes plain text without it
    `is_quick`      True: it takes a few times as long as unpacking the page does (`DocumentExtractor.is_quick`)
    """

    NON_SPACED_LANGUAGES: ClassVar[frozenset[str]] = frozenset({"THAI", "CHINESE", "JAPANESE", "KOREAN"})
    needs: ClassVar[tuple[str, ...]] = ()
    deepest_page: ClassVar[int] = 1_000
    is_quick: ClassVar[bool] = False

    @abstractmethod
    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        """Return the paragraphs of a page; None or an empty list if it has none.

        `language` is the English name in capitals ("ENGLISH"), and `stop_words` the list of that language.
        """

    @property
    def uses_stop_words(self) -> bool:
        """Whether the result depends on stop words: if not, a page in a language without a list is kept as well."""
        return True

    def check_ready(self) -> None:
        """Raise MissingDependency if a package is missing."""
        for module in self.needs:
            check_installed(module, extra=EXTRA)

    def setup(self) -> None:  # noqa: B027  # most have nothing to do
        """Load what is needed, once in every worker; by default that happens with the first page."""

    def on_tree(self) -> TreeExtractor | None:
        """Return what does the same on a page that is parsed already; None if nothing does."""
        return None

    @classmethod
    def is_spaced(cls, language: str) -> bool:
        """Whether the words of a language are separated by spaces, so that stop words can be counted."""
        return language not in cls.NON_SPACED_LANGUAGES


def keep_by_stop_words(
    paragraphs: Iterable[str], stop_words: frozenset[str], density: float, *, casefold: bool = False
) -> list[str]:
    """Return the paragraphs in which stop words make up at least this share of the words."""
    if density <= 0:
        return [paragraph for paragraph in paragraphs if paragraph.strip()]
    kept = []
    for paragraph in paragraphs:
        words = (paragraph.casefold() if casefold else paragraph).split()
        if words and sum(word in stop_words for word in words) / len(words) >= density:
            kept.append(paragraph)
    return kept
