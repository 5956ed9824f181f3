"""Texts taken apart and put together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.text.experimental.translation.segmentation import MODES, take_apart

CODE = "Look:\n```python\nprint('hello')  # a comment\n```\nDone.\n"
TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["A line. Another!", "```", "~~~~", "  x = 1", "\n", "\r\n", "<b>", '{"a": 1}', "e.g. this", "水。火"]
        )
    ).map("".join),
)


@given(TEXTS, st.sampled_from(MODES), st.integers(0, 30))
def test_a_text_put_together_from_its_own_segments_is_the_text(text, mode, least):
    template = take_apart(text, mode, min_segment_chars=least)

    assert "".join(template.pieces) == text
    assert template.rebuild(template.segments()) == text


@given(TEXTS, st.sampled_from(MODES))
def test_a_segment_has_letters_and_no_white_space_around_it(text, mode):
    for segment in take_apart(text, mode).segments():
        assert segment == segment.strip()
        assert any(map(str.isalpha, segment))


def test_coarse_segments_are_lines_and_fine_ones_sentences():
    text = "  A title\n\nIt rains, e.g. here. It pours!\t\n---\n42\n"

    assert take_apart(text).segments() == ["A title", "It rains, e.g. here. It pours!"]
    assert take_apart(text, "fine").segments() == ["A title", "It rains, e.g. here.", "It pours!"]
    assert take_apart("雨。風！雪", "fine").segments() == ["雨。", "風！", "雪"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "text",
    [CODE, CODE.replace("```", "~~~~"), CODE.replace("\n", "\r\n"), CODE.replace("```", "   ```")],
    ids=["backticks", "tildes", "crlf", "indented"],
)
def test_a_block_of_code_is_left_alone(text, mode):
    template = take_apart(text, mode)

    assert template.segments() == ["Look:", "Done."]
    assert template.rebuild(["Schau:", "Fertig."]) == text.replace("Look:", "Schau:").replace("Done.", "Fertig.")


def test_a_fence_is_closed_by_its_like_only_and_an_open_one_holds_the_rest():
    assert take_apart("````\n```\ncode\n````\ntext").segments() == ["text"]
    assert take_apart("```\n~~~\ncode\n```\ntext").segments() == ["text"]
    assert take_apart("before\n```\nall the rest\nis code").segments() == ["before"]


@pytest.mark.parametrize("line", ["---", "12.5", "<div>", '{"a": [1]}', "[1, 2]", "", "   "])
def test_what_says_nothing_in_a_language_is_not_translated(line):
    assert take_apart(line).segments() == []


@pytest.mark.parametrize("line", ["{not json}", "[see below]", "<b>bold</b>", "a"])
def test_what_only_looks_like_a_machines_is(line):
    assert take_apart(line).segments() == [line]


def test_a_text_below_the_least_length_is_one_segment():
    assert take_apart("One.\nTwo.", "fine", min_segment_chars=20).segments() == ["One.\nTwo."]


def test_texts_made_to_take_long_take_no_time():
    """A quadratic pattern or joining would take minutes, and the test fails by its time limit."""
    for text in ("." * 200_000 + "x", "?! " * 100_000, "```\n" + "x = 1\n" * 200_000, "[a]\n" * 20_000, "。" * 100_000):
        template = take_apart(text, "fine")

        assert template.rebuild(template.segments()) == text
