"""Filters on the URLs in a text."""

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.filters.column_filter import ColumnFilter, Counts, shares
from gristmill.stages.text.filters.document_filter import Bounds
from gristmill.stages.text.statistics.statistic import NUM_CHARS, PORN_URLS, URL_CHARS, Statistic

URL = r"https?://(?:[A-Za-z0-9$\-_@.&+/:=?#~]|[!*(),]|%[0-9A-Fa-f]{2})+"


@cache
def _pattern(regex: str | None) -> re.Pattern[str]:
    return re.compile(URL if regex is None else regex)


def _urls(text: str, regex: str | None) -> list[str]:
    return [match[0] for match in _pattern(regex).finditer(text)]


@dataclass
class UrlsFilter(ColumnFilter[float]):
    """Drop texts of which URLs make up too much. `url_regex` says what a URL is, instead of the built-in pattern."""

    measure: ClassVar[str] = "share of characters in URLs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_url_to_text_ratio: float = 0.2
    url_regex: str | None = None

    def score_document(self, text: str) -> float:
        return sum(map(len, _urls(text, self.url_regex))) / len(text) if text else 1.0

    def statistics(self) -> tuple[Statistic, ...]:
        return (NUM_CHARS, URL_CHARS) if self.url_regex is None else ()

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[URL_CHARS], counts[NUM_CHARS], of_nothing=1.0)

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
        return (PORN_URLS,) if self.url_regex is None else ()

    def score_counts(self, counts: Counts) -> NDArray[np.int64]:
        return (counts[PORN_URLS] > 0).astype(np.int64)

    def bounds(self) -> Bounds:
        return None, 0
