"""Every heuristic filter is defined on texts without words or lines, and exact at the edges of its definition."""

import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.filters import heuristic
from gristmill.stages.text.filters.heuristic import (
    BulletsFilter,
    CommonEnglishWordsFilter,
    EllipsisFilter,
    LongWordFilter,
    MeanWordLengthFilter,
    NonAlphaNumericFilter,
    NumbersFilter,
    ParenthesesFilter,
    PunctuationFilter,
    RepeatedLinesByCharFilter,
    RepeatedLinesFilter,
    RepeatedParagraphsByCharFilter,
    RepeatedParagraphsFilter,
    SubstringFilter,
    WhiteSpaceFilter,
    WordCountFilter,
)

OF_NOTHING = {
    NonAlphaNumericFilter: 1.0,
    NumbersFilter: 1.0,
    BulletsFilter: 0.0,
    WhiteSpaceFilter: 1.0,
    ParenthesesFilter: 1.0,
    LongWordFilter: 0,
    WordCountFilter: 0,
    MeanWordLengthFilter: 0.0,
    PunctuationFilter: 1.0,
    EllipsisFilter: 0.0,
    CommonEnglishWordsFilter: 0,
    RepeatedLinesFilter: 1.0,
    RepeatedParagraphsFilter: 1.0,
    RepeatedLinesByCharFilter: 1.0,
    RepeatedParagraphsByCharFilter: 1.0,
}


@pytest.mark.parametrize("cls", OF_NOTHING, ids=lambda cls: cls.__name__)
def test_the_empty_text_has_a_score(cls):
    assert cls().score_document("") == OF_NOTHING[cls]


@pytest.mark.parametrize("cls", OF_NOTHING, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("text", [" ", "\n", "\n\n\n", "\t \n", "\u2003"])
def test_a_text_of_white_space_only_is_judged(cls, text):
    judge = cls()

    assert judge.keep_document(judge.score_document(text)) in (True, False)


@pytest.mark.parametrize(
    ("judge", "text", "score"),
    [
        (NonAlphaNumericFilter(), "a-b\n", 0.25),
        (NumbersFilter(), "a1b2", 0.5),
        (BulletsFilter(), "  • one\n\ntwo", 0.5),
        (WhiteSpaceFilter(), "a\t\b\r", 0.75),
        (ParenthesesFilter(), "(⟨a", 2 / 3),
        (LongWordFilter(), "an elephant", 8),
        (WordCountFilter(), "  one\u2003two\n", 2),
        (MeanWordLengthFilter(), "ab abcd", 3.0),
        (PunctuationFilter(), "Yes.  \nno\n \n", 0.5),
        (EllipsisFilter(), "Go on READ MORE\nend", 0.5),
        (CommonEnglishWordsFilter(stop_at_false=False), "the The the of", 3),
        (CommonEnglishWordsFilter(), "the the the of", 2),
        (RepeatedLinesFilter(), "a\na\n\nb", 2 / 3),
        (RepeatedParagraphsFilter(), "a\n\na\n\nb\n\n", 3 / 4),
        (RepeatedLinesByCharFilter(), "aaa\naaa\nb", 4 / 7),
        (RepeatedParagraphsByCharFilter(), "aaa\n\naaa\n\nb", 4 / 7),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "score_document") else "",
)
def test_a_score_is_what_the_definition_says(judge, text, score):
    assert judge.score_document(text) == score


@pytest.mark.parametrize(("position", "kept"), [("prefix", False), ("suffix", True), ("any", True)])
def test_a_substring_is_looked_for_where_asked(position, kept):
    judge = SubstringFilter("mill", position)

    assert judge.keep_document(judge.score_document("gristmill")) is kept


def test_an_unknown_position_of_a_substring_is_refused():
    with pytest.raises(ConfigError, match=r"expected position 'prefix', 'suffix' or 'any'; got 'middle'"):
        SubstringFilter("mill", "middle")


def test_every_filter_is_exported_once():
    assert sorted(set(heuristic.__all__)) == heuristic.__all__
