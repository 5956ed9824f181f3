"""Words of Chinese and Japanese are found with a dictionary; if it is missing, that is said at once."""

import sys
import warnings

import pytest

from gristmill.errors import MissingDependency
from gristmill.stages.text.filters.heuristic import (
    LongWordFilter,
    MeanWordLengthFilter,
    RepeatingTopNGramsFilter,
    WordCountFilter,
    WordsWithoutAlphabetsFilter,
)

FILTERS = [WordCountFilter, LongWordFilter, MeanWordLengthFilter, WordsWithoutAlphabetsFilter, RepeatingTopNGramsFilter]


@pytest.mark.parametrize(("lang", "module"), [("zh", "jieba"), ("ja", "fugashi")])
@pytest.mark.parametrize("cls", FILTERS)
def test_a_missing_dictionary_is_named_before_anything_starts(cls, lang, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingDependency, match=rf"pip install 'gristmill\[{lang}\]'"):
        cls(lang=lang)


@pytest.mark.parametrize(
    ("lang", "module", "text", "words", "longest"),
    [
        ("zh", "jieba", "我来到北京清华大学", 4, 4),
        ("ja", "fugashi", "私は東京へ行きます", 6, 2),
    ],
)
def test_words_without_spaces_are_counted(lang, module, text, words, longest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages, about how they are built
        pytest.importorskip(module, reason=f"needs the extra {lang!r}")
        judge = WordCountFilter(lang=lang)

        assert judge.score_document(text) == words
        assert LongWordFilter(lang=lang).score_document(text) == longest
        assert judge.score_document(" \n") == 0
