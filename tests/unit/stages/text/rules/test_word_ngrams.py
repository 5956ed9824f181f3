"""N-grams of words by numbers are those by tuples, and words by our short cut those of Unicode's segmentation."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.stages.text.rules.documents import documents

from gristmill.stages.text.rules.word_ngrams import WordNGrams, unicode_words

pytest.importorskip("uniseg", reason="the extra dclm is not installed")

words = st.lists(st.sampled_from(["a", "b", "cc", "ddd"]), max_size=30)
MARKS = st.text(
    st.sampled_from("aZ09_:.',;- \t\n\r\x0b\x0c\x1c\"\u00e9\u0301\u200d\u2139\u05d0\u30ab\U0001f1e6"), max_size=12
)


@given(words, st.integers(1, 10))
def test_ngrams_by_numbers_equal_those_by_tuples(text, n):
    tuples = [tuple(text[at : at + n]) for at in range(len(text) - n + 1)]
    counts = Counter(tuples)
    found = WordNGrams(text).of(n)

    assert [found.counts[kind] for kind in found.kinds] == [counts[ngram] for ngram in tuples]
    assert [found.firsts[kind] for kind in found.kinds] == [tuples.index(ngram) for ngram in tuples]
    assert found.chars.tolist() == [sum(map(len, ngram)) for ngram in tuples]
    assert {tuples[first] for first in found.firsts[found.most_frequent]} == {
        ngram for ngram, count in counts.items() if count == max(counts.values())
    }


@given(st.one_of(documents, MARKS))
@example("_a a_b 3.14 a.b a.3 3.a x:y 1:2 don't 1,000;2 a'' \u0301a b\u0301c \u200d\u2139")
def test_words_are_those_of_the_segmentation_that_begin_with_a_letter_or_digit(text):
    from uniseg.wordbreak import words as segmented

    assert unicode_words(text) == [word for word in segmented(text) if word[0].isalnum()]
