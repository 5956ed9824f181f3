"""Isotonic regression is the nearest rising sequence; the area under the curve is what its definition says."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels import calibration
from gristmill.kernels.calibration import (
    auc,
    auc_interval,
    calibrate,
    cut_at_precision,
    cut_at_share,
    expected_error,
    isotonic,
)

few = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=6)
scored = st.lists(st.tuples(st.integers(-5, 5), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({positive for _, positive in rows}) == 2
)


def columns(rows):
    return np.array([score for score, _ in rows], float), np.array([positive for _, positive in rows], bool)


def squares(fitted, values, weights):
    return float((weights * (fitted - values) ** 2).sum())


def best_by_trying(values, weights):
    """The least squares of any rising sequence: it is constant on stretches, at their means, so try all stretches."""
    best = np.inf
    for cuts in itertools.product([False, True], repeat=len(values) - 1):
        blocks = np.cumsum([0, *cuts])
        means = np.bincount(blocks, values * weights) / np.bincount(blocks, weights)
        if (np.diff(means) >= 0).all():
            best = min(best, squares(means[blocks], values, weights))
    return best


def auc_by_definition(scores, positive):
    ups, downs = scores[positive], scores[~positive]
    return sum((up > down) + (up == down) / 2 for up in ups for down in downs) / (len(ups) * len(downs))


@given(few)
def test_isotonic_is_the_nearest_rising_sequence(rows):
    values, weights = (np.array(column, float) for column in zip(*rows, strict=True))
    fitted = isotonic(values, weights)

    assert (np.diff(fitted) >= 0).all()
    assert squares(fitted, values, weights) == pytest.approx(best_by_trying(values, weights), abs=1e-9)
    assert isotonic(fitted, weights) == pytest.approx(fitted)
    assert (fitted * weights).sum() == pytest.approx((values * weights).sum())


@given(scored)
def test_auc_equals_its_definition(rows):
    scores, positive = columns(rows)

    assert auc(scores, positive) == pytest.approx(auc_by_definition(scores, positive))
    assert auc(-scores, positive) == pytest.approx(1 - auc(scores, positive))
    assert auc(scores**3, positive) == auc(scores, positive)


@given(scored)
def test_the_map_to_probabilities_rises_strictly_and_stays_inside(rows):
    scores, positive = columns(rows)
    x, y = calibrate(scores, positive)

    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all()
    assert 0 < y[0] <= y[-1] < 1
    assert x[0] == scores.min() or len(x) == 1
    assert x[-1] == scores.max() or len(x) == 1


@given(scored)
def test_a_cut_does_what_it_says(rows):
    scores, positive = columns(rows)
    by_share = cut_at_share(scores, positive, 0.3)
    kept = scores >= by_share.threshold

    assert by_share.kept >= 0.3
    assert kept.mean() == pytest.approx(by_share.kept)
    assert positive[kept].mean() == pytest.approx(by_share.precision)
    assert kept[positive].mean() == pytest.approx(by_share.recall)
    assert all((scores >= higher).mean() < 0.3 for higher in scores[scores > by_share.threshold])

    by_precision = cut_at_precision(scores, positive, 0.9)
    shares = {threshold: positive[scores >= threshold].mean() for threshold in scores}
    good = [threshold for threshold, share in shares.items() if share >= 0.9]
    assert (by_precision.threshold if by_precision else None) == min(good, default=None)


def test_calibration_error_is_the_distance_of_told_and_true_by_bins():
    told = np.array([0.05, 0.05, 0.95, 0.95])

    assert expected_error(told, np.array([False, False, True, True])) == pytest.approx(0.05)
    assert expected_error(told, np.array([True, True, False, False])) == pytest.approx(0.95)
    assert expected_error(np.array([0.0, 1.0]), np.array([False, True])) == 0
    assert expected_error(np.empty(0), np.empty(0, bool)) == 0


def test_calibrating_mends_overconfident_scores_on_documents_it_has_not_seen():
    rng = np.random.default_rng(3)
    truth = rng.uniform(0.2, 0.8, 40_000)
    positive = rng.random(40_000) < truth
    scores = 1 / (1 + np.exp(-8 * (truth - 0.5)))  # says 0.08 where 0.2 is true, 0.92 where 0.8 is
    seen, unseen = slice(0, 20_000), slice(20_000, None)
    knots = calibrate(scores[seen], positive[seen])
    after = expected_error(np.interp(scores[unseen], *knots), positive[unseen])

    assert expected_error(scores[unseen], positive[unseen]) > 0.08
    assert after < 0.02


def test_the_interval_holds_the_value_and_narrows_with_documents():
    rng = np.random.default_rng(1)
    positive = rng.random(20_000) < 0.5
    scores = rng.normal(size=20_000) + positive
    few_, many = (auc_interval(scores[:n], positive[:n], seed=1) for n in (400, 20_000))

    assert few_.low < few_.value < few_.high
    assert (many.high - many.low) * 5 < few_.high - few_.low
    assert few_ == auc_interval(scores[:400], positive[:400], seed=1)
    assert few_ != auc_interval(scores[:400], positive[:400], seed=2)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Two normal distributions one standard deviation apart: the area is Φ(1/√2) = 0.7602."""
    rng = np.random.default_rng(7)
    covered = 0
    for seed in range(60):
        positive = np.arange(300) % 2 == 0
        found = auc_interval(rng.normal(size=300) + positive, positive, seed=seed, rounds=200)
        covered += found.low <= 0.7602 <= found.high

    assert covered >= 51  # 57 expected; at 95 % coverage fewer than 51 come once in 500 times


def test_drawing_neighbouring_scores_together_hardly_moves_the_interval(monkeypatch):
    rng = np.random.default_rng(1)
    positive = rng.random(3000) < 0.5
    scores = rng.normal(size=3000) + positive
    exact = auc_interval(scores, positive, seed=1)
    monkeypatch.setattr(calibration, "MOST_BINS", 500)

    assert auc_interval(scores, positive, seed=1) == pytest.approx(exact, abs=3e-3)


@pytest.mark.parametrize("positive", [[True, True], [False, False], [True]], ids=["all", "none", "too-few"])
def test_one_class_only_is_refused(positive):
    with pytest.raises(ValueError, match="expected a class for each of 2 scores, and both classes"):
        auc(np.array([1.0, 2.0]), np.array(positive))
