"""The fitted line is the minimum of the loss, and does not depend on how rows are spread over blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.models import linear_head
from gristmill.models.linear_head import LinearHead, fit_linear


def data(rows, dim, *, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, dim)).astype(np.float32) * rng.uniform(0.1, 10, dim).astype(np.float32) + 3
    positive = vectors @ rng.normal(size=dim) + rng.normal(size=rows) * noise > np.median(vectors @ np.ones(dim))
    positive[:2] = [True, False]
    return vectors, positive


def loss_of(head, vectors, positive, l2):
    """The loss of the module's docstring; the penalty is on weights of scaled vectors."""
    signs = np.where(positive, 1, -1)
    scaled = head.weights.astype(float) * vectors.astype(float).std(axis=0)
    return np.logaddexp(0, -signs * head.log_odds(vectors)).sum() + l2 / 2 * (scaled**2).sum()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), dim=st.integers(1, 6), l2=st.sampled_from([0.1, 1.0, 30.0]))
def test_no_line_near_it_is_better(seed, dim, l2):
    vectors, positive = data(200, dim, seed=seed)
    head = fit_linear(vectors, positive, l2=l2)
    best = loss_of(head, vectors, positive, l2)
    rng = np.random.default_rng(seed)
    for size in (1e-3, 1e-1):
        for _ in range(10):
            moved = head.weights + rng.normal(size=dim).astype(np.float32) * np.float32(size)
            other = LinearHead(moved, head.bias + rng.normal() * size)
            assert loss_of(other, vectors, positive, l2) >= best - 1e-4


def test_blocks_do_not_matter(monkeypatch):
    vectors, positive = data(1000, 5, seed=1)
    whole = fit_linear(vectors, positive)
    monkeypatch.setattr(linear_head, "BLOCK", 7)
    parts = fit_linear(vectors, positive)

    assert (parts.weights == whole.weights).all()
    assert parts.bias == whole.bias


def test_classes_that_a_line_parts_exactly_have_a_finite_one():
    vectors = np.array([[-1.0, 5], [-2, 5], [1, 5], [2, 5]], np.float32)  # the second column says nothing
    head = fit_linear(vectors, np.array([False, False, True, True]))

    assert np.isfinite(head.weights).all()
    assert (head.log_odds(vectors) > 0).tolist() == [False, False, True, True]


def test_scores_do_not_depend_on_neighbours():
    vectors, positive = data(300, 64, seed=2)
    head = fit_linear(vectors, positive)

    assert head.log_odds(vectors).tolist() == [head.log_odds(row[None])[0] for row in vectors]


@pytest.mark.parametrize("positive", [[True, True], [False, False], [True]], ids=["all", "none", "too-few"])
def test_one_class_only_is_refused(positive):
    with pytest.raises(ConfigError, match="both classes among them"):
        fit_linear(np.zeros((2, 3), np.float32), np.array(positive))
