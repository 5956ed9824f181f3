"""Filters on the number of lines and letters in a program."""

import string
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

_LETTERS = string.ascii_letters.encode()


def count_letters(text: str) -> int:
    """Return how many characters are letters of any script."""
    if text.isascii():
        return len(text) - len(text.encode().translate(None, _LETTERS))
    return sum(map(str.isalpha, text))


@dataclass
class NumberOfLinesOfCodeFilter(DocumentFilter[int]):
    """Drop programs with too few or too many lines, empty ones counted."""

    measure: ClassVar[str] = "lines"
    score_type: ClassVar[pa.DataType] = pa.int64()

    min_lines: int = 10
    max_lines: int = 20000

    def score_document(self, text: str) -> int:
        return text.count("\n") + 1

    def bounds(self) -> Bounds:
        return self.min_lines, self.max_lines


@dataclass
class AlphaFilter(DocumentFilter[float]):
    """Drop files that are mostly numbers, such as tables and weights written as code (StarCoder, Li et al., 2023)."""

    measure: ClassVar[str] = "share of letters"
    score_type: ClassVar[pa.DataType] = pa.float64()

    min_alpha_ratio: float = 0.25

    def score_document(self, text: str) -> float:
        return count_letters(text) / len(text) if text else 0.0

    def bounds(self) -> Bounds:
        return self.min_alpha_ratio, None
