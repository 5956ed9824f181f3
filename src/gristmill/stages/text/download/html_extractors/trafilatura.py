"""`TrafilaturaExtractor`: main content by trafilatura, the best of the general extractors, and a slow one."""

import copy
import logging
from configparser import ConfigParser
from functools import cache
from types import ModuleType
from typing import ClassVar

from gristmill.errors import require
from gristmill.stages.text.download.html_extractors.base import EXTRA, HTMLExtractorAlgorithm, keep_by_stop_words

# The caches trafilatura keeps from page to page: what it has seen, by which it drops repetitions, and texts.
_CACHES = (("deduplication", "LRU_TEST"), ("utils", "trim"), ("utils", "line_processing"))


class TrafilaturaExtractor(HTMLExtractorAlgorithm):
    """Trafilatura's text; only paragraphs (lines) with enough stop words are kept.

    The sizes are settings of trafilatura; `extract_kwargs` goes to `trafilatura.extract`, with `deduplicate=True`
    unless it is given. What trafilatura remembers is forgotten before each page: else a text would depend on the pages
    before it. `casefold` compares stop words without regard to case.
    """

    needs: ClassVar[tuple[str, ...]] = ("trafilatura", "lxml_html_clean")
    deepest_page: ClassVar[int] = 250  # libxml2 gives up at 256, and the rest of the page is silently lost

    def __init__(
        self,
        required_stopword_density: float = 0.32,
        min_extracted_size: int = 250,
        min_extracted_comm_size: int = 1,
        min_output_size: int = 1,
        min_output_comm_size: int = 1,
        max_tree_size: int | None = None,
        min_duplcheck_size: int = 100,
        max_repetitions: int = 2,
        *,
        casefold: bool = False,
        **extract_kwargs: object,
    ) -> None:
        self.required_stopword_density = required_stopword_density
        self.min_extracted_size = min_extracted_size
        self.min_extracted_comm_size = min_extracted_comm_size
        self.min_output_size = min_output_size
        self.min_output_comm_size = min_output_comm_size
        self.max_tree_size = max_tree_size
        self.min_duplcheck_size = min_duplcheck_size
        self.max_repetitions = max_repetitions
        self.casefold = casefold
        self.extract_kwargs = {"deduplicate": True, **extract_kwargs}

    @property
    def uses_stop_words(self) -> bool:
        return self.required_stopword_density > 0

    def setup(self) -> None:
        _library()

    def extract_text(self, html: str, stop_words: frozenset[str], language: str) -> list[str] | None:
        paragraphs = self.paragraphs(html)
        if paragraphs is not None and self.is_spaced(language):
            density = self.required_stopword_density
            paragraphs = keep_by_stop_words(paragraphs, stop_words, density, casefold=self.casefold)
        return paragraphs or None

    def paragraphs(self, html: str) -> list[str] | None:
        """Return what trafilatura finds."""
        library = _library()
        for module, name in _CACHES:
            kept = getattr(getattr(library, module, None), name, None)
            forget = getattr(kept, "cache_clear", None) or getattr(kept, "clear", None)
            if forget is not None:
                forget()
        text = library.extract(html, config=self._settings(), **self.extract_kwargs)
        return None if text is None else [line for line in text.split("\n") if line]

    def _settings(self) -> ConfigParser:
        wanted = {
            "MIN_EXTRACTED_SIZE": self.min_extracted_size,
            "MIN_EXTRACTED_COMM_SIZE": self.min_extracted_comm_size,
            "MIN_OUTPUT_SIZE": self.min_output_size,
            "MIN_OUTPUT_COMM_SIZE": self.min_output_comm_size,
            "MIN_DUPLCHECK_SIZE": self.min_duplcheck_size,
            "MAX_REPETITIONS": self.max_repetitions,
        }
        if self.max_tree_size:
            wanted["MAX_TREE_SIZE"] = self.max_tree_size
        return _settings(tuple((name, str(value)) for name, value in wanted.items()))


@cache
def _library() -> ModuleType:
    library = require("trafilatura", extra=EXTRA)
    for module, _ in _CACHES:
        require(f"trafilatura.{module}", extra=EXTRA)
    log = logging.getLogger("trafilatura")
    if log.level == logging.NOTSET:  # three lines for every page without text, which is in the books already
        log.setLevel(logging.CRITICAL)
    return library


@cache  # not on the extractor, which travels to other processes
def _settings(wanted: tuple[tuple[str, str], ...]) -> ConfigParser:
    settings: ConfigParser = copy.deepcopy(require("trafilatura.settings", extra=EXTRA).DEFAULT_CONFIG)
    for name, value in wanted:
        settings["DEFAULT"][name] = value
    return settings
