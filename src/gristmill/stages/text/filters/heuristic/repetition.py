"""Filters on lines, paragraphs and n-grams of words that occur again within one text.

*Lines* are the pieces between newlines that are not blank; *paragraphs* are the pieces between double newlines, empty
ones included. Their score is the share that is left when each distinct piece is counted once, so 1.0 means no
repetition, and the parameters are, their names notwithstanding, the least share that is kept. The score of n-grams is
the share of characters in what repeats, and the parameters are the greatest share.
"""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.stages.text.filters.heuristic.string import check_segmenter, is_segmented, split_lines, split_words
from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.document_filter import Bounds, ColumnFilter, Counts
from gristmill.stages.text.judging.rule import shares
from gristmill.stages.text.judging.statistics import Statistic


def _distinct_share(pieces: list[str]) -> float:
    return len(set(pieces)) / len(pieces) if pieces else 1.0


def _distinct_char_share(pieces: list[str]) -> float:
    chars = sum(map(len, pieces))
    return sum(map(len, set(pieces))) / chars if chars else 1.0


@dataclass
class RepeatedLinesFilter(ColumnFilter[float]):
    """Drop texts in which too many lines are repeats."""

    measure: ClassVar[str] = "share of distinct lines"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_repeated_line_fraction: float = 0.7

    def score_document(self, text: str) -> float:
        return _distinct_share(split_lines(text))

    def statistics(self) -> tuple[Statistic, ...]:
        return s.DISTINCT_LINES, s.NUM_LINES

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.DISTINCT_LINES], counts[s.NUM_LINES], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return self.max_repeated_line_fraction, None


@dataclass
class RepeatedParagraphsFilter(ColumnFilter[float]):
    """Drop texts in which too many paragraphs are repeats."""

    measure: ClassVar[str] = "share of distinct paragraphs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_repeated_paragraphs_ratio: float = 0.7

    def score_document(self, text: str) -> float:
        return _distinct_share(text.split("\n\n"))

    def statistics(self) -> tuple[Statistic, ...]:
        return s.DISTINCT_PARAGRAPHS, s.NUM_PARAGRAPHS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.DISTINCT_PARAGRAPHS], counts[s.NUM_PARAGRAPHS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return self.max_repeated_paragraphs_ratio, None


@dataclass
class RepeatedLinesByCharFilter(ColumnFilter[float]):
    """Drop texts in which repeated lines hold too many of the characters."""

    measure: ClassVar[str] = "share of characters in distinct lines"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_repeated_lines_char_ratio: float = 0.8

    def score_document(self, text: str) -> float:
        return _distinct_char_share(split_lines(text))

    def statistics(self) -> tuple[Statistic, ...]:
        return s.DISTINCT_LINE_CHARS, s.LINE_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.DISTINCT_LINE_CHARS], counts[s.LINE_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return self.max_repeated_lines_char_ratio, None


@dataclass
class RepeatedParagraphsByCharFilter(ColumnFilter[float]):
    """Drop texts in which repeated paragraphs hold too many of the characters."""

    measure: ClassVar[str] = "share of characters in distinct paragraphs"
    score_type: ClassVar[pa.DataType] = pa.float64()

    max_repeated_paragraphs_char_ratio: float = 0.8

    def score_document(self, text: str) -> float:
        return _distinct_char_share(text.split("\n\n"))

    def statistics(self) -> tuple[Statistic, ...]:
        return s.DISTINCT_PARAGRAPH_CHARS, s.PARAGRAPH_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[s.DISTINCT_PARAGRAPH_CHARS], counts[s.PARAGRAPH_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return self.max_repeated_paragraphs_char_ratio, None


def _ngrams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[k:] for k in range(n)), strict=False))


def _check_n(who: str, n: int) -> None:
    if n < 1:
        raise ConfigError(f"{who}: expected n ≥ 1; got {n!r}")


def _share_or_all(chars: NDArray[np.int64], counts: Counts, n: int) -> NDArray[np.float64]:
    """A text of fewer than n words counts as all repetition."""
    found = shares(chars, counts[s.NUM_CHARS], of_nothing=1.0)
    found[counts[s.NUM_WORDS] < n] = 1.0
    return found


@dataclass
class RepeatingTopNGramsFilter(ColumnFilter[float]):
    """Drop texts in which a single n-gram of words makes up too much.

    It is the most frequent one, or the first of equally frequent ones, joined with single spaces (in Chinese and
    Japanese with nothing), and counted wherever it stands in the text, even as part of longer words.
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
        # A single word may stand anywhere in the text; with two or more, the space between them says where to look.
        if is_segmented(self.lang) or self.n < 2:
            return ()
        return s.NUM_CHARS, s.NUM_WORDS, s.top_ngram_chars(self.n)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return _share_or_all(counts[s.top_ngram_chars(self.n)], counts, self.n)

    def bounds(self) -> Bounds:
        return None, self.max_repeating_ngram_ratio


@dataclass
class RepeatingDuplicateNGramsFilter(ColumnFilter[float]):
    """Drop texts in which repeated n-grams of words make up too much.

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
        return s.NUM_CHARS, s.NUM_WORDS, s.duplicate_ngram_chars(self.n)

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return _share_or_all(counts[s.duplicate_ngram_chars(self.n)], counts, self.n)

    def bounds(self) -> Bounds:
        return None, self.max_repeating_duplicate_ngram_ratio
