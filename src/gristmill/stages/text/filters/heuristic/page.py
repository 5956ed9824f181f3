"""Filters on what belongs to a page and not to its text: URLs, and phrases on cookies and terms."""

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.document_filter import Bounds, ColumnFilter, Counts
from gristmill.stages.text.judging.rule import shares
from gristmill.stages.text.judging.statistics import Statistic
from gristmill.stages.text.judging.tables import LOREM_IPSUM_PHRASE, POLICY_PHRASES

URL = r"https?://(?:[A-Za-z0-9$\-_@.&+/:=?#~]|[!*(),]|%[0-9A-Fa-f]{2})+"


@cache
def _pattern(regex: str | None) -> re.Pattern[str]:
    return re.compile(URL if regex is None else regex)


def _urls(text: str, regex: str | None) -> list[str]:
    return [match[0] for match in _pattern(regex).finditer(text)]


@dataclass
class UrlsFilter(ColumnFilter[float]):
    """Drop texts in which URLs make up too much. `url_regex` says what a URL is, instead of the built-in pattern."""

    measure: ClassVar[str] = "share of characters in URLs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_url_to_text_ratio: float = 0.2
    url_regex: str | None = None

    def score_document(self, text: str) -> float:
        return sum(map(len, _urls(text, self.url_regex))) / len(text) if text else 1.0

    def statistics(self) -> tuple[Statistic, ...]:
        return (s.NUM_CHARS, s.URL_CHARS) if self.url_regex is None else ()

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.URL_CHARS], counts[s.NUM_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return None, self.max_url_to_text_ratio


@dataclass
class PornographicUrlsFilter(ColumnFilter[int]):
    """Drop texts with a URL that contains "porn"."""

    measure: ClassVar[str] = "pornographic URL found"
    score_type: ClassVar[pa.DataType] = pa.int64()

    url_regex: str | None = None

    def score_document(self, text: str) -> int:
        return int(any("porn" in url for url in _urls(text, self.url_regex)))

    def statistics(self) -> tuple[Statistic, ...]:
        return (s.PORN_URLS,) if self.url_regex is None else ()

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        return (counts[s.PORN_URLS] > 0).astype(np.int64)

    def bounds(self) -> Bounds:
        return None, 0


@dataclass
class BoilerPlateStringFilter(ColumnFilter[float]):
    """Drop texts with "lorem ipsum", and those with too many paragraphs about cookies or terms.

    `remove_if_at_top_or_bottom` is accepted because users pass it; it has no effect.
    """

    measure: ClassVar[str] = "share of boilerplate paragraphs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    remove_if_at_top_or_bottom: bool = True
    max_boilerplate_string_ratio: float = 0.4

    def score_document(self, text: str) -> float:
        paragraphs = text.lower().split("\n\n")
        if any(LOREM_IPSUM_PHRASE in paragraph for paragraph in paragraphs):
            return 1.0
        return sum(any(phrase in p for phrase in POLICY_PHRASES) for p in paragraphs) / len(paragraphs)

    def statistics(self) -> tuple[Statistic, ...]:
        return s.LOREM_IPSUM, s.NUM_PARAGRAPHS, s.POLICY_PARAGRAPHS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        found = shares(counts[s.POLICY_PARAGRAPHS], counts[s.NUM_PARAGRAPHS], of_nothing=0.0)
        found[counts[s.LOREM_IPSUM] > 0] = 1.0
        return found

    def bounds(self) -> Bounds:
        return None, self.max_boilerplate_string_ratio
