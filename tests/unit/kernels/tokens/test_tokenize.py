"""The compiled tokeniser equals its plain definition on any text, and cuts what users know as they know it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.kernels.tokens.english import split_english
from gristmill.kernels.tokens.english_characters import UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions
from gristmill.kernels.tokens.lexicon_layout import (
    ENDS_SENTENCE,
    FLAG_BITS,
    HAS_LETTER,
    IS_PUNCTUATION,
    IS_SPACE,
    IS_SYMBOL,
    records,
)
from gristmill.kernels.tokens.marks import SENTENCE_ENDS, SYMBOLS, is_punctuation
from gristmill.kernels.tokens.token_hash import hash_bytes
from gristmill.stages.text.rules.tokenizer import Tokenizer
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.tasks.text_columns import from_texts

pytestmark = pytest.mark.slow  # the first call compiles, or reads what an earlier process compiled

ADDRESSES = ["www.", "http://", ".com", "8.8.8.8", "10.0.0.1", "192.168.1.1", "172.20.0.1", ":80", "/x"]
MARKS = [*"():;.,-_'\"<>=/+*^~%$#@&°…—–’ \t\n1aAbZéжΩ中🙂", "US$", "..", "……", "\u2028", "\u0301", "\x00", "\x1c"]
SNIPPETS = st.sampled_from([*sorted(exceptions()), *UNITS, *ADDRESSES, *MARKS])
texts = st.one_of(st.text(), st.lists(SNIPPETS, max_size=12).map("".join))


FLAGS = HAS_LETTER | IS_SYMBOL | IS_PUNCTUATION | ENDS_SENTENCE | IS_SPACE


def column(documents):
    return TextColumn.of(pa.chunked_array([from_texts(documents)], pa.string()))


def written(tokens):
    """(hash, characters, bytes, flags) of every token, as the lexicon has them."""
    key, about, size, _ = records(tokens.lexicon)[tokens.ids].T.astype(object)
    return list(zip(key, about >> FLAG_BITS, size, about & FLAGS, strict=True))


def described(token):
    """What `Tokens` says of a token, by definition."""
    flags = HAS_LETTER * any(map(str.isalpha, token)) + IS_SYMBOL * SYMBOLS.issuperset(token)
    flags += IS_PUNCTUATION * is_punctuation(token) + ENDS_SENTENCE * (token in SENTENCE_ENDS)
    return hash_bytes(token.encode()), len(token), len(token.encode()), flags + IS_SPACE * token.isspace()


@given(st.lists(texts, max_size=5))
@example(["x:) )", "foo.Bar-baz", "a@b.co", "", "'' I'm C++ 5km/h", "25°F.", "(don't)"])
def test_equals_the_definition(documents):
    tokens = Tokenizer().cut(column(documents), with_space=True)

    assert written(tokens) == [described(token) for text in documents for token in split_english(text)]
    assert np.diff(tokens.offsets).tolist() == [len(split_english(text)) for text in documents]


@given(st.lists(texts, max_size=5))
def test_white_space_is_left_out_unless_asked_for(documents):
    words = [token for text in documents for token in split_english(text) if not token.isspace()]

    assert [key for key, *_ in written(Tokenizer().cut(column(documents)))] == [
        hash_bytes(word.encode()) for word in words
    ]


@given(texts)
def test_tokens_and_the_blanks_between_them_are_the_text(text):
    assert "".join(split_english(text)).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Don't panic, Mr. Smith!", ["Do", "n't", "panic", ",", "Mr.", "Smith", "!"]),
        ("A 5km run (in the U.S.)", ["A", "5", "km", "run", "(", "in", "the", "U.S.", ")"]),
        ("It costs $3.50.", ["It", "costs", "$", "3.50", "."]),
        ("see http://a.example/x?y=1, or me@b.example", ["see", "http://a.example/x?y=1", ",", "or", "me@b.example"]),
        ("well-known and/or 7pm :)", ["well", "-", "known", "and/or", "7", "pm", ":)"]),
        ("two  blanks\n\nhere", ["two", " ", "blanks", "\n\n", "here"]),
    ],
)
def test_well_known_cases(text, tokens):
    assert split_english(text) == tokens


@pytest.mark.parametrize("piece", ["(", ".", "a", "1", "a.", "a@", "…", "-", "\u0301", "x:)"])
def test_time_grows_with_the_length_of_one_piece_and_no_faster(piece):
    """A million characters without white space would take hours if anything were looked at again for each of them."""
    text = piece * (1_000_000 // len(piece))
    tokens = Tokenizer().cut(column([text]))

    assert records(tokens.lexicon)[tokens.ids][:, 2].sum() == len(text.encode())


def test_a_batch_with_more_different_words_than_are_remembered_is_cut_all_the_same():
    tokenizer = Tokenizer()
    numbers = list(map(str, range(300_000)))
    tokens = tokenizer.cut(column(["a few words", " ".join(numbers), "a few words"]))

    assert tokens.num_tokens.tolist() == [3, len(numbers), 3]
    assert tokens.ids[:3].tolist() == tokens.ids[-3:].tolist()
    assert tokenizer.cut(column(["a few words"])).num_tokens.tolist() == [3]
