"""Batches hold each row once, keep to their limits, and are padded as a model takes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.token_batches import batches_of, order_by_length, pad_rows, rows_that_fit

lengths_of_rows = st.lists(st.integers(0, 40), max_size=60)


def batches_by_definition(lengths, max_rows, max_tokens, sort):
    """One row after another: a batch ends before the row that would exceed it."""
    rows = [row for row, length in enumerate(lengths) if length]
    if sort:
        rows.sort(key=lambda row: (lengths[row], row))
    batches = []
    for row in rows:
        grown = [*batches[-1], row] if batches else []
        if grown and len(grown) <= max_rows and len(grown) * max(lengths[r] for r in grown) <= max_tokens:
            batches[-1] = grown
        else:
            batches.append([row])
    return batches


@given(lengths_of_rows, st.integers(1, 9), st.integers(1, 200), st.booleans())
def test_batches_are_those_of_the_definition(lengths, max_rows, max_tokens, sort):
    batches = batches_of(np.array(lengths, dtype=np.int64), max_rows=max_rows, max_tokens=max_tokens, sort=sort)

    assert [batch.tolist() for batch in batches] == batches_by_definition(lengths, max_rows, max_tokens, sort)


def test_rows_of_equal_length_keep_their_order():
    assert order_by_length(np.array([3, 1, 3, 0, 1])).tolist() == [1, 4, 0, 2]


def test_a_row_over_the_limit_is_a_batch_of_its_own():
    assert rows_that_fit(np.array([900, 900]), max_rows=8, max_tokens=512) == 1
    assert rows_that_fit(np.array([], dtype=np.int64), max_rows=8, max_tokens=512) == 0


@pytest.mark.parametrize(("max_rows", "max_tokens"), [(0, 1), (1, 0)])
def test_limits_below_one_are_refused(max_rows, max_tokens):
    with pytest.raises(ValueError, match=rf"must be ≥ 1; got {max_rows} and {max_tokens}$"):
        rows_that_fit(np.array([1]), max_rows=max_rows, max_tokens=max_tokens)


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=6), st.data(), st.booleans())
def test_padding_puts_every_id_in_its_place(documents, data, left):
    rows = data.draw(st.lists(st.integers(0, len(documents) - 1), min_size=1, max_size=6))
    offsets = np.cumsum([0, *map(len, documents)])
    flat = np.array([each for document in documents for each in document], dtype=np.int32)
    side = "left" if left else "right"
    ids, mask = pad_rows(flat, offsets, np.array(rows), pad_id=-1, side=side)
    longest = max(len(documents[row]) for row in rows)

    for row, line, seen in zip(rows, ids.tolist(), mask.tolist(), strict=True):
        padding = longest - len(documents[row])
        expected = [*[-1] * padding, *documents[row]] if left else [*documents[row], *[-1] * padding]
        assert line == expected
        assert seen == [int(each != -1) for each in expected]


def test_padding_of_no_rows_is_empty():
    ids, mask = pad_rows(np.array([5], np.int32), np.array([0, 1]), np.array([], np.int64), pad_id=0)

    assert ids.shape == mask.shape == (0, 0)
