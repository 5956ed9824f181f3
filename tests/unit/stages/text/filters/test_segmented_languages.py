"""Words of Chinese and Japanese are found by a segmenter; the same filters then count them."""

import pytest

from gristmill.stages.text.filters.heuristic import (
    LongWordFilter,
    MeanWordLengthFilter,
    RepeatingDuplicateNGramsFilter,
    RepeatingTopNGramsFilter,
    SymbolsToWordsFilter,
    WordCountFilter,
    WordsWithoutAlphabetsFilter,
)
from gristmill.stages.text.judging.document_filter import has_column_form

WORDY = [
    LongWordFilter,
    MeanWordLengthFilter,
    RepeatingDuplicateNGramsFilter,
    RepeatingTopNGramsFilter,
    SymbolsToWordsFilter,
    WordCountFilter,
    WordsWithoutAlphabetsFilter,
]
SENTENCES = [("zh", "我来到北京清华大学", 4), ("ja", "吾輩は猫である。", 6)]
REPEATED = [("zh", "北京大学北京大学北京大学"), ("ja", "猫である猫である猫である")]


@pytest.fixture
def segmenter(request):
    module = {"zh": "jieba", "ja": "fugashi"}[request.param]
    pytest.importorskip(module, reason=f"needs the extra {request.param!r}")
    return request.param


@pytest.mark.parametrize("make", WORDY)
@pytest.mark.parametrize("segmenter", ["zh", "ja"], indirect=True)
def test_a_filter_for_a_segmented_language_scores_one_document_at_a_time(make, segmenter):
    assert has_column_form(make())
    assert not has_column_form(make(lang=segmenter))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("segmenter", "text", "words"),
    [("zh", "我来到北京清华大学", 4), ("ja", "吾輩は猫である。", 6)],
    indirect=["segmenter"],
)
def test_words_are_those_of_the_segmenter(segmenter, text, words):
    assert WordCountFilter(lang=segmenter).score_document(text) == words
    assert WordCountFilter().score_document(text) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("segmenter", "text"),
    [("zh", "北京大学北京大学北京大学"), ("ja", "猫である猫である猫である")],
    indirect=["segmenter"],
)
def test_an_ngram_is_joined_without_spaces_and_so_found_in_the_text(segmenter, text):
    assert RepeatingTopNGramsFilter(2, lang=segmenter).score_document(text) >= 0.5
    assert RepeatingDuplicateNGramsFilter(1, lang=segmenter).score_document(text) >= 0.5


@pytest.mark.slow
@pytest.mark.parametrize("segmenter", ["zh", "ja"], indirect=True)
@pytest.mark.parametrize("make", WORDY)
@pytest.mark.parametrize("text", ["", "\n\n", " \u3000 ", "\x00"])
def test_texts_without_words_are_defined(segmenter, make, text):
    assert make(lang=segmenter).score_document(text) >= 0
