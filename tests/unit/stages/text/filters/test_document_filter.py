"""A filter measures and decides; its name and threshold are what rejects show."""

import pytest

from gristmill.stages.text.filters import DocumentFilter
from gristmill.stages.text.filters.heuristic import CommonEnglishWordsFilter, WhiteSpaceFilter, WordCountFilter


class HTMLNoiseFilter(DocumentFilter[int]):
    def score_document(self, text):
        return text.count("<")

    def keep_document(self, score):
        return score < 3


class Silent(DocumentFilter[int]):
    pass


def test_a_name_is_the_class_name_in_snake_case_without_filter():
    assert [f.name for f in (WordCountFilter(), HTMLNoiseFilter(), Silent())] == ["word_count", "html_noise", "silent"]


def test_a_name_can_be_set():
    judge = HTMLNoiseFilter()
    judge.name = "tags"

    assert judge.name == "tags"


def test_a_name_set_the_way_users_know_it_counts():
    class Named(DocumentFilter[int]):
        def __init__(self):
            super().__init__()
            self._name = "my_filter"

    assert Named().name == "my_filter"


@pytest.mark.parametrize(
    ("judge", "threshold"),
    [
        (WordCountFilter(min_words=50), "50 ≤ words ≤ 100000"),
        (WhiteSpaceFilter(), "share of white space ≤ 0.25"),
        (CommonEnglishWordsFilter(), "2 ≤ common English words"),
        (HTMLNoiseFilter(), None),
    ],
)
def test_the_threshold_is_said_in_words(judge, threshold):
    assert judge.describe_threshold() == threshold


def test_an_inverted_threshold_says_so():
    assert WhiteSpaceFilter().describe_threshold(invert=True) == "not (share of white space ≤ 0.25)"


@pytest.mark.parametrize(("score", "kept"), [(49, False), (50, True), (60, True), (61, False)])
def test_both_bounds_are_kept(score, kept):
    assert WordCountFilter(min_words=50, max_words=60).keep_document(score) is kept


def test_a_filter_without_decision_says_what_is_missing():
    with pytest.raises(NotImplementedError, match=r"^Silent: a filter must define keep_document or bounds$"):
        Silent().keep_document(1)
