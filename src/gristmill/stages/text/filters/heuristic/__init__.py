"""Filters that count: characters, words, lines, repetition. The reason of a drop is the filter's name."""

from gristmill.stages.text.filters.heuristic.repetition import (
    RepeatedLinesByCharFilter,
    RepeatedLinesFilter,
    RepeatedParagraphsByCharFilter,
    RepeatedParagraphsFilter,
)
from gristmill.stages.text.filters.heuristic.string import (
    BulletsFilter,
    CommonEnglishWordsFilter,
    EllipsisFilter,
    LongWordFilter,
    MeanWordLengthFilter,
    NonAlphaNumericFilter,
    NumbersFilter,
    ParenthesesFilter,
    PunctuationFilter,
    SubstringFilter,
    WhiteSpaceFilter,
    WordCountFilter,
)

__all__ = [
    "BulletsFilter",
    "CommonEnglishWordsFilter",
    "EllipsisFilter",
    "LongWordFilter",
    "MeanWordLengthFilter",
    "NonAlphaNumericFilter",
    "NumbersFilter",
    "ParenthesesFilter",
    "PunctuationFilter",
    "RepeatedLinesByCharFilter",
    "RepeatedLinesFilter",
    "RepeatedParagraphsByCharFilter",
    "RepeatedParagraphsFilter",
    "SubstringFilter",
    "WhiteSpaceFilter",
    "WordCountFilter",
]
