"""Tokens and shingles equal their definitions in plain Python."""

import unicodedata
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.deduplication.exact_stages import hash_tokens
from gristmill.deduplication.sketches import Shingling
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.tasks.text_columns import from_texts

pytestmark = pytest.mark.slow  # the kernels are compiled first

words = st.lists(st.sampled_from(["a", "b", "The", "café", "x1"]), max_size=9)
texts = st.lists(words.map(" ".join), min_size=1, max_size=5)


def text_column(texts):
    return TextColumn.of(pa.chunked_array([from_texts(texts)]))


def sets(texts, *, by_word=True, n=3):
    values, bounds = Shingling(by_word, n).sets(text_column(texts))
    return [set(values[start:end].tolist()) for start, end in pairwise(bounds)]


def folded_words(text):
    """Lower case, no accents, punctuation as white space: the slow way."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c)[0] != "M")
    return "".join(c if unicodedata.category(c)[0] in "LN" else " " for c in plain).split()


def ngrams(tokens, n):
    return {tuple(tokens[i : i + n]) for i in range(max(1, len(tokens) - n + 1))} if tokens else set()


@settings(deadline=None)
@given(documents=texts, n=st.integers(1, 4))
def test_two_texts_share_as_many_shingles_as_n_grams_of_folded_words(documents, n):
    made = sets(documents, n=n)
    defined = [ngrams(folded_words(text), n) for text in documents]
    assert [len(own) for own in made] == [len(own) for own in defined]
    for a, x in zip(made, defined, strict=True):
        for b, y in zip(made, defined, strict=True):
            assert len(a & b) == len(x & y)


@settings(deadline=None)
@given(text=st.text(alphabet="ab cé.", max_size=12), n=st.integers(1, 5))
def test_character_shingles_are_n_grams_of_folded_characters(text, n):
    assert len(sets([text], by_word=False, n=n)[0]) == len(ngrams(" ".join(folded_words(text)), n))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, World!", "hello world"),
        ("café", "cafe\u0301"),
        ("ÀÉÎ", "aei"),
        ("a\u00a0b\nc", "a b c"),
        ("İstanbul", "istanbul"),
        ("ΑΘΉΝΑ", "αθηνα"),
    ],
)
def test_what_folds_alike_hashes_alike(one, other):
    hashes = hash_tokens(text_column([one, other]))
    assert hashes[0].tolist() == hashes[1].tolist()


@pytest.mark.parametrize(
    ("one", "other"), [("a b", "ab"), ("a b", "b a"), ("1 2", "1 3"), ("日本", "本日"), ("😀", "😁")]
)
def test_what_differs_does_not(one, other):
    hashes = hash_tokens(text_column([one, other]))
    assert hashes[0].tolist() != hashes[1].tolist()


def test_a_script_without_spaces_is_taken_character_by_character():
    assert len(sets(["日本語の文章です"], n=3)[0]) == 6


@pytest.mark.parametrize("text", ["", " ", "...", "\n\t", "\u0301"])
def test_a_text_without_words_has_no_shingles_and_the_hash_zero(text):
    assert sets([text]) == [set()]
    assert hash_tokens(text_column([text])).tolist() == [[0, 0]]


def test_a_text_shorter_than_a_shingle_has_one_that_only_its_equals_have():
    short, same, longer, other = sets(["a b", "A, b", "a b c", "a c"], n=5)
    assert len(short) == 1
    assert short == same
    assert not short & longer
    assert not short & other


@settings(deadline=None)
@given(documents=texts, n=st.integers(1, 3))
def test_a_set_is_sorted_and_has_no_repeats(documents, n):
    values, bounds = Shingling(length=n).sets(text_column(documents))
    for start, end in pairwise(bounds):
        assert (np.diff(values[start:end].astype(np.int64)) > 0).all()
