"""lid.176, read and asked without fastText, says what fastText says."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.stages.text.html.charset_texts import SENTENCES

from gristmill.models import fasttext_model
from gristmill.models.fasttext_model import bundled_model
from gristmill.stages.text.html.language_model import LanguageModel, label_tree
from gristmill.stages.text.html.languages import UNKNOWN, language_model, language_of

pytest.importorskip("fasttext", reason="needs the extra 'langid'")

SAMPLES = [text for texts in SENTENCES.values() for text in texts]
ODD = [
    "</s>",
    "one </s> zwei drei vier",
    "__label__en",
    "__label__de der Hund",
    "x__label__en",
    "a\0b c\x0bd\x0ce",
    "\u3000\u00a0",
    "x",
    "é",
    "word " * 400,
    "w" * 5_000,
    "\U0001f600 " * 40,
    "e\u0301" * 30,
]


@pytest.fixture(scope="module")
def ours():
    return language_model()


@pytest.fixture(scope="module")
def theirs():
    return fasttext_model.load(bundled_model())


def assert_same(ours, theirs, line):
    found, expected = ours.predict(line), fasttext_model.predict(theirs, line)

    assert found[0] == expected[0], line
    assert found[1] == pytest.approx(expected[1], abs=2e-6), line


@pytest.mark.parametrize("line", [*ODD, ""], ids=repr)
def test_odd_lines_are_what_they_are_to_fasttext(ours, theirs, line):
    assert_same(ours, theirs, line)


def test_texts_in_many_languages_are_what_they_are_to_fasttext(ours, theirs):
    words = " ".join(SAMPLES).split()
    chance = random.Random(4)
    lines = [" ".join(chance.choices(words, k=chance.randrange(1, 30))) for _ in range(300)]

    for line in [*(" ".join(text.split()) for text in SAMPLES), *lines]:
        assert_same(ours, theirs, line)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60))
def test_any_text_is_what_it_is_to_fasttext(line):
    assert_same(language_model(), fasttext_model.load(bundled_model()), line)


def test_a_line_that_is_longer_than_all_before_has_room(theirs):
    fresh = LanguageModel(Path(bundled_model()))
    for size in (3, 30, 3_000):
        assert_same(fresh, theirs, "ĝis la revido " * size)


@pytest.mark.parametrize(
    ("counts", "children"),
    [
        ([10, 4, 2, 1], [(3, 2), (4, 1), (5, 0)]),
        ([5, 4, 3, 2], [(3, 2), (1, 4), (0, 5)]),
    ],
)
def test_the_rarest_labels_are_joined_first(counts, children):
    assert label_tree(counts) == children


def test_a_page_without_a_word_is_in_no_language():
    assert language_of([]) == language_of([" ", "\n"]) == UNKNOWN
