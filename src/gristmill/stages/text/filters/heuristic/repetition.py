"""Filters on lines and paragraphs that occur again within one text.

*Lines* are the pieces between newlines that are not blank; *paragraphs* are the pieces between double newlines, empty
ones included. A score is the share that is left when each distinct piece is counted once, so 1.0 means no repetition,
and the parameters are, their names notwithstanding, the least share that is kept.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.filters.column_filter import ColumnFilter, Counts, shares
from gristmill.stages.text.filters.document_filter import Bounds
from gristmill.stages.text.filters.heuristic.string import split_lines
from gristmill.stages.text.statistics.statistic import (
    DISTINCT_LINE_CHARS,
    DISTINCT_LINES,
    DISTINCT_PARAGRAPH_CHARS,
    DISTINCT_PARAGRAPHS,
    LINE_CHARS,
    NUM_LINES,
    NUM_PARAGRAPHS,
    PARAGRAPH_CHARS,
    Statistic,
)


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
        return DISTINCT_LINES, NUM_LINES

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[DISTINCT_LINES], counts[NUM_LINES], of_nothing=1.0)

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
        return DISTINCT_PARAGRAPHS, NUM_PARAGRAPHS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[DISTINCT_PARAGRAPHS], counts[NUM_PARAGRAPHS], of_nothing=1.0)

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
        return DISTINCT_LINE_CHARS, LINE_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[DISTINCT_LINE_CHARS], counts[LINE_CHARS], of_nothing=1.0)

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
        return DISTINCT_PARAGRAPH_CHARS, PARAGRAPH_CHARS

    def score_counts(self, counts: Counts) -> NDArray[np.float64]:
        return shares(counts[DISTINCT_PARAGRAPH_CHARS], counts[PARAGRAPH_CHARS], of_nothing=1.0)

    def bounds(self) -> Bounds:
        return self.max_repeated_paragraphs_char_ratio, None
