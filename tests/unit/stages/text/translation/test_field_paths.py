"""Paths to texts inside of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.text.experimental.translation.field_paths import parse_path

MESSAGES = [{"role": "user", "content": "hi"}, {"role": "tool"}, {"role": "assistant", "content": ""}, None, "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), inner, max_size=3),
)


def test_texts_are_collected_in_order_and_what_is_no_text_is_passed_over():
    assert parse_path("messages.*.content", who="x").texts(MESSAGES) == ["hi", ""]
    assert parse_path("messages.0.content", who="x").texts(MESSAGES) == ["hi"]
    assert parse_path("meta.title", who="x").texts({"title": "t", "other": "o"}) == ["t"]
    assert parse_path("text", who="x").texts("plain") == ["plain"]
    assert parse_path("text", who="x").texts(None) == []
    assert parse_path("messages.7.content", who="x").texts(MESSAGES) == []


def test_texts_are_put_back_and_nothing_else_changes():
    path = parse_path("messages.*.content", who="x")
    new = path.replaced(MESSAGES, ["salut", ""])

    assert new[0] == {"role": "user", "content": "salut"}
    assert new[1:] == MESSAGES[1:]
    assert MESSAGES[0]["content"] == "hi"


@given(JSON, st.sampled_from(["c", "c.*", "c.a", "c.*.a", "c.*.*", "c.0.b"]))
def test_a_value_with_its_own_texts_put_back_is_the_value(value, text):
    path = parse_path(text, who="x")

    assert path.replaced(value, path.texts(value)) == value
    marked = [f"<{t}>" for t in path.texts(value)]
    assert path.texts(path.replaced(value, marked)) == marked


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "*", "*.a", None])
def test_a_path_that_names_no_column_is_refused(text):
    with pytest.raises(ConfigError, match=r"^x: expected the name of a column"):
        parse_path(text, who="x")
