"""Pooling equals its definition on either side of padding, and padding changes no bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.pooling import WAYS, first_token, last_token, mean_pooling, normalised, pool

lengths = st.lists(st.integers(1, 7), min_size=1, max_size=5)


def padded(texts, extra, *, left):
    width, longest = texts[0].shape[1], max(map(len, texts)) + extra
    hidden, mask = np.full((len(texts), longest, width), 99, np.float32), np.zeros((len(texts), longest), np.int64)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), None) if left else slice(len(text))
        hidden[row, place], mask[row, place] = text, 1
    return hidden, mask


@given(lengths, st.integers(0, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_pooling_sees_a_rows_own_tokens_only(sizes, extra, left, seed):
    chance = np.random.default_rng(seed)
    texts = [chance.standard_normal((size, 3)).astype(np.float32) for size in sizes]
    hidden, mask = padded(texts, extra, left=left)

    for row, text in enumerate(texts):
        np.testing.assert_allclose(mean_pooling(hidden, mask)[row], text.mean(axis=0), rtol=1e-4, atol=1e-6)
        assert (first_token(hidden, mask)[row] == text[0]).all()
        assert (last_token(hidden, mask)[row] == text[-1]).all()


@given(lengths, st.integers(0, 2**32 - 1))
def test_padding_changes_no_bit_of_a_mean(sizes, seed):
    chance = np.random.default_rng(seed)
    texts = [chance.standard_normal((size, 3)).astype(np.float32) for size in sizes]
    right = mean_pooling(*padded(texts, 0, left=False))

    assert right.tobytes() == mean_pooling(*padded(texts, 5, left=False)).tobytes()
    assert right.tobytes() == mean_pooling(*padded(texts, 5, left=True)).tobytes()


DEFINITIONS = {
    "cls": lambda text: text[0],
    "max": lambda text: text.max(axis=0),
    "mean": lambda text: text.sum(axis=0) / len(text),
    "mean_sqrt_len_tokens": lambda text: text.sum(axis=0) / len(text) ** 0.5,
    "weightedmean": lambda text: sum((n + 1) * row for n, row in enumerate(text)) / sum(range(1, len(text) + 1)),
    "lasttoken": lambda text: text[-1],
}


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_its_definition_whatever_a_model_answers_for_padding(way, left):
    chance = np.random.default_rng(5)
    texts = [chance.standard_normal((size, 3)).astype(np.float32) for size in (1, 4, 7)]
    hidden, mask = padded(texts, 2, left=left)
    hidden[mask == 0] = np.nan

    expected = np.stack([DEFINITIONS[way](text) for text in texts])
    np.testing.assert_allclose(WAYS[way](hidden, mask), expected, rtol=1e-5, atol=1e-6)


def test_several_ways_are_put_end_to_end():
    hidden, mask = np.arange(6, dtype=np.float32).reshape(1, 3, 2), np.ones((1, 3), np.int64)

    assert pool(hidden, mask, ("cls", "max")).tolist() == [[0, 1, 4, 5]]


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_tokens_is_nought(way):
    assert WAYS[way](np.ones((1, 3, 2), np.float32), np.zeros((1, 3), np.int64)).tolist() == [[0, 0]]


def test_normalised_vectors_have_length_one_and_nought_stays():
    found = normalised(np.array([[3, 4], [0, 0], [1e-30, 0]], np.float32))

    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-6)
