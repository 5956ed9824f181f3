"""MinHash estimates Jaccard similarity, and bands follow their S-curve."""

import random

import numpy as np
import pytest
from tests.unit.kernels.dedup.test_tokens import sets, text_column

from gristmill.deduplication.sketches import Shingling
from gristmill.kernels.dedup.banding import Banding, choose_bands
from gristmill.kernels.dedup.permutations import draw_permutations

pytestmark = pytest.mark.slow  # the kernels are compiled first


def agreeing_share(one, other, positions, *, seed):
    """The share of signature positions in which two texts agree: as bands of one position."""
    keys = Shingling(length=1).sketch(text_column([one, other]), Banding(positions, 1), seed).keys
    return np.mean(keys[:, 0] == keys[:, 1])


def similar_texts(share, rng, *, num_words=200):
    """Two texts of different words of which about this share is in both, and their exact similarity."""
    total = [f"w{rng.randrange(10**9)}" for _ in range(num_words)]
    shared = round(num_words * share)
    rest = total[shared:]
    one = total[:shared] + rest[: len(rest) // 2]
    other = total[:shared] + rest[len(rest) // 2 :]
    a, b = sets([" ".join(one), " ".join(other)], n=1)
    return " ".join(one), " ".join(other), len(a & b) / len(a | b)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.95])
def test_the_share_of_agreeing_positions_estimates_the_similarity(share):
    rng = random.Random(share)
    one, other, similarity = similar_texts(share, rng)
    assert agreeing_share(one, other, 4096, seed=3) == pytest.approx(similarity, abs=4 / (2 * 4096**0.5))  # 4 sigma


def test_the_estimate_is_not_biased_over_many_pairs():
    rng = random.Random(1)
    errors = []
    for _ in range(400):
        one, other, similarity = similar_texts(0.7, rng)
        errors.append(agreeing_share(one, other, 128, seed=42) - similarity)
    sigma = (0.7 * 0.3 / 128 / 400) ** 0.5
    assert abs(np.mean(errors)) < 4 * sigma


@pytest.mark.parametrize("banding", [Banding(22, 5), Banding(14, 8)])
@pytest.mark.parametrize("share", [0.6, 0.75])
def test_bands_find_pairs_as_often_as_the_curve_says(banding, share):
    rng = random.Random(7)
    pairs = [similar_texts(share, rng) for _ in range(600)]
    texts = [text for one, other, _ in pairs for text in (one, other)]
    keys = Shingling(length=1).sketch(text_column(texts), banding, 5).keys
    found = (keys[:, 0::2] == keys[:, 1::2]).any(axis=0).mean()
    expected = np.mean([banding.probability(similarity) for _, _, similarity in pairs])
    assert found == pytest.approx(expected, abs=4 * (expected * (1 - expected) / len(pairs)) ** 0.5 + 1e-9)


def test_sizes_are_numbers_of_shingles():
    assert Shingling(length=2).sketch(text_column(["", "a b c"]), Banding(2, 5), 0).sizes.tolist() == [0, 2]


def test_keys_of_different_bands_differ_even_where_the_positions_agree():
    keys = Shingling().sketch(text_column(["", "."]), Banding(5, 2), 0).keys
    assert len(set(keys.ravel().tolist())) == 5


def test_stored_keys_stay_comparable_across_releases():
    keys = Shingling().sketch(text_column(["The quick brown fox jumps over the lazy dog."]), Banding(2, 3), 42).keys
    assert keys.tolist() == [[5420934429429060504], [3305168928081552186]]
    assert draw_permutations(2, seed=42).tolist() == [[383329929, 3324115917], [2811363265, 1884968545]]


@pytest.mark.parametrize(("threshold", "expected"), [(0.8, (22, 5)), (0.9, (10, 5)), (1.0, (1, 5))])
def test_the_default_banding_finds_a_pair_at_the_threshold(threshold, expected):
    banding = choose_bands(threshold)
    assert banding == expected
    assert banding.probability(threshold) >= 0.999


def test_a_low_threshold_gets_narrower_bands():
    assert choose_bands(0.2).rows < 5
    assert choose_bands(0.2).probability(0.2) >= 0.999


def test_the_curve_names_the_settings_and_rises():
    lines = Banding(14, 8).curve().splitlines()
    assert "14 bands of 8" in lines[0]
    shares = [float(line.split()[-1].rstrip("%")) for line in lines[1:]]
    assert shares == sorted(shares)
    assert shares[10] == pytest.approx(92.3, abs=0.1)  # at 0.80: what FineWeb's setting finds
