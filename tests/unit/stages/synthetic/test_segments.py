"""Documents in segments that fit a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.synthetic.segments import TokenLimits, room_for_text, segment
from gristmill.stages.synthetic.token_counts import estimate_tokens

LIMITS = TokenLimits(min_document=0, min_segment=0, max_input=20, max_output=20, max_answer=18, min_result=0)


def words(text):
    return len(text.split())


def limits(**changed):
    return TokenLimits(**{**vars(LIMITS), **changed})


def test_neighbours_are_joined_as_long_as_they_fit_and_a_line_break_counts():
    assert segment("a b\nc d\ne f", LIMITS, 5, words).segments == ["a b\nc d", "e f"]
    assert segment("a b\nc d\ne f", LIMITS, 4, words).segments == ["a b", "c d", "e f"]


def test_a_line_no_prompt_can_hold_is_left_out_counted_and_ends_a_segment():
    found = segment("a\nb b b b b b\nc", LIMITS, 5, words)

    assert found.segments == ["a", "c"]
    assert dict(found.left_out()) == {"too_long_lines": 1}
    assert segment("b b b b b b\na b\nc d", LIMITS, 5, words).segments == ["a b\nc d"]  # all the room is there again


def test_short_documents_and_short_segments_are_left_out_and_counted():
    assert dict(segment("a b", limits(min_document=3), 5, words).left_out()) == {"too_short_documents": 1}

    found = segment("a b c d\ne\n", limits(min_segment=2), 4, words)
    assert found.segments == ["a b c d"]
    assert dict(found.left_out()) == {"too_short_segments": 1}


@pytest.mark.parametrize("text", ["", "\n", " \n \n"])
def test_a_blank_document_has_no_segment(text):
    assert segment(text, LIMITS, 5, words).segments == []


@given(st.lists(st.text(st.sampled_from("ab \n"), max_size=12)), st.integers(1, 8))
def test_segments_are_runs_of_whole_lines_in_order_and_within_the_limit(parts, room):
    text = "\n".join(parts)
    found = segment(text, LIMITS, room, words)
    lines = text.split("\n")

    position = 0
    for each in found.segments:
        own = each.split("\n")
        position = next(i for i in range(position, len(lines)) if lines[i : i + len(own)] == own) + len(own)
        assert sum(map(words, own)) + len(own) - 1 <= room
    assert found.too_long_lines == sum(words(line) > room for line in lines)


@given(st.lists(st.text(st.sampled_from("ab "), min_size=1, max_size=6).filter(str.strip), min_size=1))
def test_nothing_is_left_out_where_everything_fits(lines):
    assert "\n".join(segment("\n".join(lines), LIMITS, 6, words).segments).split("\n") == lines


def test_a_prompt_that_leaves_no_room_is_a_mistake_said_with_its_size():
    assert room_for_text(LIMITS, 10, who="stage") == 8
    with pytest.raises(
        ConfigError, match=r"^stage: expected a prompt that leaves room .* in 20 tokens; got one of 19$"
    ):
        room_for_text(LIMITS, 19, who="stage")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("mill", 1), ("internationalization", 4), ("a, b", 3), ("12345", 2), ("水車小屋", 4), ("мельница", 3)],
)
def test_the_estimate_of_tokens(text, tokens):
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_the_estimate_of_two_lines_is_that_of_each(first, second):
    apart = estimate_tokens(first.replace("\n", "").replace("\r", "")), estimate_tokens(second.strip("\n\r"))

    together = estimate_tokens(first.replace("\n", "").replace("\r", "") + "\n" + second.strip("\n\r"))
    assert together == sum(apart) + 1
