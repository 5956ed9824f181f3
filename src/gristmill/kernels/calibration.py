"""How good scores are, and scores turned into probabilities. Plain numpy.

N documents have a score and a class: true for positive. A score is calibrated if, of the documents that score 0.7, 70 %
are positive. `calibrate` learns a map to such scores from documents the model has not seen (isotonic regression, by
pooling adjacent violators: Ayer et al. 1955), and `expected_error` says how far from it scores are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

MOST_BINS = 4096  # of scores in a bootstrap: 1,000 rounds take half a second however many documents there are


class Interval(NamedTuple):
    """A value, and the range that holds it with the probability asked for."""

    value: float
    low: float
    high: float


class Cut(NamedTuple):
    """A threshold and what it does: the share of documents at or above it, how many of those are positive, and the
    share of positive documents that are there.
    """

    threshold: float
    kept: float
    precision: float
    recall: float


def isotonic(values: Floats, weights: Floats) -> Floats:
    """Return the rising sequence that is nearest to the values by weighted squares. O(N)."""
    means: list[float] = []
    totals: list[float] = []
    sizes: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while means and means[-1] >= mean:
            before = totals.pop()
            total += before
            mean += (means.pop() - mean) * (before / total)
            size += sizes.pop()
        means.append(mean)
        totals.append(total)
        sizes.append(size)
    return np.repeat(np.array(means), np.array(sizes, np.int64))


def calibrate(scores: Floats, positive: Flags) -> tuple[Floats, Floats]:
    """Return the knots (scores rising, probabilities rising) of the map from scores to probabilities.

    Isotonic regression is a staircase, on which many documents would share a score that no threshold could split. So
    each step is one knot, at the mean score of its documents (Oron, Flournoy 2017), and between knots the line is
    straight. Probabilities keep half a document's distance from 0 and 1, and the outermost scores are knots too, so
    the line is nowhere flat among the documents.
    """
    _check_both(scores, positive, "calibrate")
    levels, of_level = np.unique(scores, return_inverse=True)
    weights = np.bincount(of_level).astype(np.float64)
    fitted = isotonic(np.bincount(of_level, positive) / weights, weights)
    steps, of_step = np.unique(fitted, return_inverse=True)
    heights = (steps * len(scores) + 0.5) / (len(scores) + 1)
    centres = np.bincount(of_step, levels * weights) / np.bincount(of_step, weights)
    x, y = centres.tolist(), heights.tolist()
    if levels[0] < x[0]:
        x, y = [levels[0], *x], [y[0] / 2, *y]
    if levels[-1] > x[-1]:
        x, y = [*x, levels[-1]], [*y, (1 + y[-1]) / 2]
    return np.array(x), np.array(y)


def expected_error(probabilities: Floats, positive: Flags, *, bins: int = 10) -> float:
    """Return the expected calibration error: how far the mean score in each of `bins` equal parts of the range is
    from the share of positive documents there, averaged over documents (Naeini et al. 2015).
    """
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    told, true = np.bincount(place, probabilities, bins), np.bincount(place, positive, bins)
    return float(np.abs(told - true).sum() / max(1, len(probabilities)))


def auc(scores: Floats, positive: Flags) -> float:
    """Return the probability that a positive document scores higher than a negative one; a tie counts half."""
    _check_both(scores, positive, "auc")
    _, of_level = np.unique(scores, return_inverse=True)
    size = int(of_level.max()) + 1
    return _auc_of_counts(*(np.bincount(of_level, own, size).astype(np.float64) for own in (positive, ~positive)))


def auc_interval(
    scores: Floats, positive: Flags, *, seed: int, rounds: int = 1000, confidence: float = 0.95
) -> Interval:
    """Return the area under the curve with a bootstrap interval (Efron 1979; percentiles, classes drawn apart).

    Drawing N documents with replacement means drawing how many fall on each score: a multinomial. Beyond MOST_BINS
    scores, neighbours are drawn together, which changes the interval by less than 1e-3.
    """
    value = auc(scores, positive)
    levels, of_level = np.unique(scores, return_inverse=True)
    if len(levels) > MOST_BINS:
        of_level = np.argsort(np.argsort(scores, kind="stable"), kind="stable") * MOST_BINS // len(scores)
    size = int(of_level.max()) + 1
    rng = np.random.default_rng(seed)
    drawn = []
    for chosen in (positive, ~positive):
        counts = np.bincount(of_level[chosen], minlength=size)
        drawn.append((int(counts.sum()), counts / counts.sum()))
    (ups, of_ups), (downs, of_downs) = drawn
    found = [
        _auc_of_counts(rng.multinomial(ups, of_ups).astype(float), rng.multinomial(downs, of_downs).astype(float))
        for _ in range(rounds)
    ]
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(value, float(min(low, value)), float(max(high, value)))


def _auc_of_counts(positive: Floats, negative: Floats) -> float:
    """The same, from the number of documents of each class at each score, scores rising."""
    below = np.cumsum(negative) - negative / 2
    return float((positive * below).sum() / (positive.sum() * negative.sum()))


def cut_at_precision(scores: Floats, positive: Flags, precision: float) -> Cut | None:
    """Return the lowest threshold at which this share of the documents kept is positive; None if there is none."""
    cuts = _cuts(scores, positive)
    good = np.flatnonzero(cuts[2] >= precision)
    return None if not len(good) else Cut(*(float(column[good[0]]) for column in cuts))


def cut_at_share(scores: Floats, positive: Flags, share: float) -> Cut:
    """Return the threshold that keeps this share of the documents, or the least above it that scores allow."""
    cuts = _cuts(scores, positive)
    enough = np.flatnonzero(cuts[1] >= share)
    return Cut(*(float(column[enough[-1]]) for column in cuts))


def _cuts(scores: Floats, positive: Flags) -> tuple[Floats, Floats, Floats, Floats]:
    """Thresholds rising, and the share kept, the precision and the recall at each."""
    levels, of_level = np.unique(scores, return_inverse=True)
    kept = np.cumsum(np.bincount(of_level)[::-1])[::-1].astype(np.float64)
    right = np.cumsum(np.bincount(of_level, positive)[::-1])[::-1]
    return levels, kept / len(scores), right / kept, right / max(1, int(positive.sum()))


def _check_both(scores: Floats, positive: Flags, who: str) -> None:
    good = int(positive.sum())
    if len(scores) != len(positive) or good in (0, len(positive)):
        raise ValueError(
            f"{who}: expected a class for each of {len(scores)} scores, and both classes among them; "
            f"got {good} positive of {len(positive)}"
        )
