"""The compiled tokeniser equals its plain definition on any text, and cuts what users know as they know it."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.kernels.tokens.english import split_english
from gristmill.kernels.tokens.english_characters import UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions
from gristmill.kernels.tokens.english_tables import hash_bytes
from gristmill.kernels.tokens.marks import SENTENCE_ENDS, SYMBOLS, is_punctuation
from gristmill.kernels.tokens.tokenize import (
    ENDS_SENTENCE,
    HAS_LETTER,
    IS_PUNCTUATION,
    IS_SPACE,
    IS_SYMBOL,
    tokenize,
)

pytestmark = pytest.mark.slow  # the first call compiles, or reads what an earlier process compiled

ADDRESSES = ["www.", "http://", ".com", "8.8.8.8", "10.0.0.1", "192.168.1.1", "172.20.0.1", ":80", "/x"]
MARKS = [*"():;.,-_'\"<>=/+*^~%$#@&°…—–’ \t\n1aAbZéжΩ中🙂", "US$", "..", "……", "\u2028", "\u0301", "\x00", "\x1c"]
SNIPPETS = st.sampled_from([*sorted(exceptions()), *UNITS, *ADDRESSES, *MARKS])
texts = st.one_of(st.text(), st.lists(SNIPPETS, max_size=12).map("".join))


def column(documents):
    encoded = [text.encode() for text in documents]
    offsets = np.cumsum([0, *map(len, encoded)])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def described(token):
    """What `Tokens` says of a token, by definition."""
    flags = HAS_LETTER * any(map(str.isalpha, token)) + IS_SYMBOL * SYMBOLS.issuperset(token)
    flags += IS_PUNCTUATION * is_punctuation(token) + ENDS_SENTENCE * (token in SENTENCE_ENDS)
    return hash_bytes(token.encode()), len(token), len(token.encode()), flags + IS_SPACE * token.isspace()


@given(st.lists(texts, max_size=5))
@example(["x:) )", "foo.Bar-baz", "a@b.co", "", "'' I'm C++ 5km/h", "25°F.", "(don't)"])
def test_equals_the_definition(documents):
    tokens = tokenize(*column(documents), with_space=True)

    assert list(zip(*(values.tolist() for values in tokens[1:]), strict=True)) == [
        described(token) for text in documents for token in split_english(text)
    ]
    assert np.diff(tokens.offsets).tolist() == [len(split_english(text)) for text in documents]


@given(st.lists(texts, max_size=5))
def test_white_space_is_left_out_unless_asked_for(documents):
    words = [token for text in documents for token in split_english(text) if not token.isspace()]

    assert tokenize(*column(documents)).hashes.tolist() == [hash_bytes(word.encode()) for word in words]


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
    tokens = tokenize(*column([text]))

    assert tokens.bytes.sum() == len(text.encode())
