"""The compiled tokeniser equals its plain definition on any text, and cuts what users know as they know it."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.kernels.tokens.english import split_english
from gristmill.kernels.tokens.english_characters import UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions
from gristmill.kernels.tokens.marks import SYMBOLS
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.judging.tokens import EnglishTokenizer
from gristmill.tasks.text_columns import from_texts

pytestmark = pytest.mark.slow  # the first call compiles, or reads what an earlier process compiled

ADDRESSES = ["www.", "http://", ".com", "8.8.8.8", "10.0.0.1", "192.168.1.1", "172.20.0.1", ":80", "/x"]
MARKS = [*"():;.,-_'\"<>=/+*^~%$#@&°…—–’ \t\n1aAbZéжΩ中🙂", "US$", "..", "……", "\u2028", "\u0301", "\x00", "\x1c"]
SNIPPETS = st.sampled_from([*sorted(exceptions()), *UNITS, *ADDRESSES, *MARKS])
texts = st.one_of(st.text(), st.lists(SNIPPETS, max_size=12).map("".join))


NOTHING, BLANK, SPACE = range(3)  # what stands before a token
MANY = 300_000  # different pieces: twice what is remembered


def column(documents):
    return TextColumn.of(pa.chunked_array([from_texts(documents)], pa.string()))


def written(tokens):
    """The tokens of each text, each with what stands before it; an empty one at the end."""
    found = []
    for d, base in enumerate(tokens.firsts[:-1]):
        first, end = tokens.offsets[d : d + 2]
        bounds = [*(base + tokens.places[first:end]), base + tokens.places[end - 1]]
        texts = [tokens.solid[low:high].tobytes().decode() for low, high in itertools.pairwise(bounds)]
        found.append(list(zip(texts, tokens.gaps[first:end].tolist(), strict=True)))
    return found


def defined(text):
    """What `written` is to return: white space that is a token is told by the gap of the token behind it."""
    found, gap, position = [], NOTHING, 0
    for token in [*split_english(text), ""]:
        if token.isspace():
            position += len(token) + (text[position] == " " != token[0])
            gap = SPACE
            continue
        blank = position and text[position : position + 1] == " "
        found.append((token, BLANK if blank and gap == NOTHING else gap))
        position, gap = position + bool(blank) + len(token), NOTHING
    return found


def counted(text):
    tokens = [token for token in split_english(text) if not token.isspace()]
    words = [token for token in tokens if not SYMBOLS.issuperset(token)]
    return [len(words), sum(map(len, words)), sum(any(map(str.isalpha, token)) for token in tokens)]


@given(st.lists(texts, max_size=5))
@example(["x:) )", "foo.Bar-baz", "a@b.co", "", "'' I'm C++ 5km/h", "25°F.", "(don't)"])
@example([" ".join(["x:) well-known"] * 300), "y" * 65 + ":) a", ("z" * 63 + " ") * 3])
def test_equals_the_definition(documents):
    tokenizer = EnglishTokenizer()
    for _ in range(2):  # what is learnt and what is remembered
        tokens = tokenizer.cut(column(documents))

        assert written(tokens) == [defined(text) for text in documents]
        assert tokens.counts.tolist() == [counted(text) for text in documents]


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
    tokens = EnglishTokenizer().cut(column([text]))

    assert tokens.places[-1] == len(text.encode())


def test_a_batch_with_more_different_words_than_are_remembered_is_cut_all_the_same():
    numbers = [f"n{number}," for number in range(MANY)]
    tokens = EnglishTokenizer().cut(column(["a few words", " ".join(numbers), "a few words", " ".join(numbers)]))

    assert tokens.num_tokens.tolist() == [3, 2 * MANY, 3, 2 * MANY]
    assert written(tokens)[:2] == written(tokens)[2:]
