"""Filters on word n-grams that occur again within one text."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.stages.text.filters.column_filter import ColumnFilter, Counts, shares
from gristmill.stages.text.filters.document_filter import Bounds
from gristmill.stages.text.filters.heuristic.split_words import check_segmenter, is_segmented, split_words
from gristmill.stages.text.statistics.statistic import (
    NUM_CHARS,
    NUM_WORDS,
    Statistic,
    duplicate_ngram_chars,
    top_ngram_chars,
)


def _ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[k:] for k in range(n)), strict=False))


def _check_n(who: str, n: int) -> None:
    if n < 1:
        raise ConfigError(f"{who}: expected n ≥ 1; got {n!r}")


def _share_or_all(chars: NDArray[np.int64], counts: Counts, n: int) -> NDArray[np.float64]:
    """A text of fewer than n words counts as all repetition."""
    found = shares(chars, counts[NUM_CHARS], of_nothing=1.0)
    found[counts[NUM_WORDS] < n] = 1.0
    return found


@dataclass
class RepeatingTopNGramsFilter(ColumnFilter[float]):
    """Drop texts of which one n-gram of words makes up too much.

    It is the most frequent one, of equally frequent ones the first, joined with single spaces (in Chinese and Japanese
    with nothing), and counted wherever it stands in the text, also as part of longer words.
    """

    measure: ClassVar[str] = "share of characters in the top n-gram"
    score_type: ClassVar[pa.DataType] = pa.float64()

    n: int = 2
    max_repeating_ngram_ratio: float = 0.2
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)
        _check_n("RepeatingTopNGramsFilter", self.n)

    def score_document(self, text: str) -> float:
        words = split_words(text, self.lang)
        if len(words) < self.n:
            return 1.0
        [(top, _)] = Counter(_ngrams(words, self.n)).most_common(1)
        joined = ("" if is_segmented(self.lang) else " ").join(top)
        return text.count(joined) * len(joined) / len(text)

    def statistics(self) -> tuple[Statistic, ...]:
        # A single word may stand anywhere in the text; only from two on, the space between them says where to look.
        if is_segmented(self.lang) or self.n < 2:
            return ()
        return NUM_CHARS, NUM_WORDS, top_ngram_chars(self.n)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return _share_or_all(counts[top_ngram_chars(self.n)], counts, self.n)

    def bounds(self) -> Bounds:
        return None, self.max_repeating_ngram_ratio


@dataclass
class RepeatingDuplicateNGramsFilter(ColumnFilter[float]):
    """Drop texts of which n-grams of words that occurred before make up too much.

    A repeat counts with the characters of those of its words that the repeat before it did not count, and the spaces
    between them.
    """

    measure: ClassVar[str] = "share of characters in repeated n-grams"
    score_type: ClassVar[pa.DataType] = pa.float64()

    n: int = 2
    max_repeating_duplicate_ngram_ratio: float = 0.2
    lang: str = "en"

    def __post_init__(self) -> None:
        check_segmenter(self.lang)
        _check_n("RepeatingDuplicateNGramsFilter", self.n)

    def score_document(self, text: str) -> float:
        words = split_words(text, self.lang)
        if len(words) < self.n:
            return 1.0
        seen: set[tuple[str, ...]] = set()
        chars = counted_to = 0
        for i, ngram in enumerate(_ngrams(words, self.n)):
            if ngram in seen:
                new = words[max(i, counted_to) : i + self.n]
                chars += sum(map(len, new)) + min(len(new), self.n - 1)
                counted_to = i + self.n
            seen.add(ngram)
        return chars / len(text)

    def statistics(self) -> tuple[Statistic, ...]:
        if is_segmented(self.lang) or self.n < 2:
            return ()
        return NUM_CHARS, NUM_WORDS, duplicate_ngram_chars(self.n)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return _share_or_all(counts[duplicate_ngram_chars(self.n)], counts, self.n)

    def bounds(self) -> Bounds:
        return None, self.max_repeating_duplicate_ngram_ratio
