"""Columns made, searched and changed in their buffers equal what Python's strings say."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.tasks.text_columns import find_rows, from_texts, is_text, match_rows, replace_rows

words = st.text(st.sampled_from("ab@é€𝄞\x00\n"), max_size=6)
chunk_lists = st.lists(st.lists(st.none() | words, max_size=6), max_size=4)
kinds = st.sampled_from([pa.string(), pa.large_string()])


def chunked(chunks, kind, cut=0):
    return pa.chunked_array([pa.array(chunk, kind).slice(cut) for chunk in chunks], kind)


@given(values=st.lists(st.none() | words, max_size=9))
def test_a_column_of_strings_equals_what_pyarrow_makes(values):
    assert from_texts(values).equals(pa.array(values, pa.string()))


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(UnicodeEncodeError):
        from_texts(["\ud800"])


@given(
    chunks=chunk_lists, kind=kinds, cut=st.integers(0, 3), needle=st.sampled_from(["a", "ab", "@", "é", "\x00", "𝄞a"])
)
def test_the_rows_that_hold_a_needle_are_found(chunks, kind, cut, needle):
    column = chunked(chunks, kind, cut)
    expected = [text is not None and needle in text for text in column.to_pylist()]

    assert find_rows(column, needle.encode()).tolist() == expected


@given(chunks=chunk_lists, kind=kinds, cut=st.integers(0, 3))
def test_the_rows_a_pattern_matches_are_found(chunks, kind, cut):
    column = chunked(chunks, kind, cut)
    expected = [text is not None and ("a" in text or "é" in text) for text in column.to_pylist()]

    assert match_rows(column, "a|é").tolist() == expected


def test_a_needle_over_the_end_of_a_text_is_no_hit():
    assert find_rows(chunked([["xa", "bx", "ab"]], pa.string()), b"ab").tolist() == [False, False, True]


@given(chunks=chunk_lists, kind=kinds, cut=st.integers(0, 3), data=st.data())
def test_replaced_rows_hold_the_new_texts_and_the_others_theirs(chunks, kind, cut, data):
    column = chunked(chunks, kind, cut)
    new = data.draw(st.dictionaries(st.integers(0, max(0, len(column) - 1)), words)) if len(column) else {}
    rows = np.array(sorted(new), np.int64)
    expected = [new.get(row, text) for row, text in enumerate(column.to_pylist())]
    made = replace_rows(column, rows, [new[row] for row in sorted(new)])

    made.validate(full=True)
    assert (made.to_pylist(), made.type) == (expected, kind)


@pytest.mark.parametrize(("kind", "answer"), [(pa.string(), True), (pa.large_string(), True), (pa.int64(), False)])
def test_only_utf8_in_one_layout_is_text(kind, answer):
    assert is_text(kind) is answer
