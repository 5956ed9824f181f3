"""Clusters are what their definition says, and who is too close to whom does not depend on how it was computed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.kmeans import assign, find_similar, fit, normalize

# Small whole numbers: their products are exact, so that blocks of any size have the same ties.
rows = st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), max_size=12)


def as_vectors(numbers):
    return np.array(numbers, np.float32).reshape(-1, 3)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def similar_by_definition(numbers, threshold):
    """Best first: each loses to the most similar of those kept before it, the earliest of equals."""
    kept, lost_to = [], []
    for place, vector in enumerate(numbers):
        nearest = max(kept, key=lambda other: (dot(vector, numbers[other]), -other), default=None)
        if nearest is not None and dot(vector, numbers[nearest]) >= threshold:
            lost_to.append((nearest, dot(vector, numbers[nearest])))
        else:
            lost_to.append((-1, 0))
            kept.append(place)
    return lost_to


@given(numbers=rows, threshold=st.integers(1, 6), block=st.integers(1, 5))
def test_who_loses_to_whom_equals_the_definition_in_blocks_of_any_size(numbers, threshold, block):
    lost_to, cosine = find_similar(as_vectors(numbers), threshold, block=block)

    assert list(zip(lost_to.tolist(), cosine.tolist(), strict=True)) == similar_by_definition(numbers, threshold)


@given(numbers=rows, centroids=st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_nearest_centroid_is_the_first_of_the_most_similar(numbers, centroids):
    nearest, cosine = assign(as_vectors(numbers), as_vectors(centroids), block=5)
    expected = [max(range(len(centroids)), key=lambda k: (dot(row, centroids[k]), -k)) for row in numbers]

    assert nearest.tolist() == expected
    assert cosine.tolist() == [dot(row, centroids[k]) for row, k in zip(numbers, expected, strict=True)]


def test_vectors_get_length_one_and_nothing_stays_nothing():
    assert normalize(as_vectors([[3, 0, 4], [0, 0, 0]])).tolist() == [
        pytest.approx([0.6, 0.0, 0.8]),
        [0.0, 0.0, 0.0],
    ]


def clouds(*, size=40):
    """Three groups of vectors, each close to an axis, one after another."""
    noise = np.random.default_rng(0).normal(scale=0.05, size=(3, size, 3))
    return normalize((np.eye(3)[:, None, :] + noise).reshape(-1, 3).astype(np.float32))


@pytest.mark.parametrize("seed", range(5))
def test_groups_far_apart_become_the_clusters(seed):
    vectors = clouds()
    centroids = fit(vectors, 3, seed=seed, max_iter=20, tol=1e-4)
    nearest = assign(vectors, centroids)[0].reshape(3, -1)

    assert [len(set(row)) for row in nearest.tolist()] == [1, 1, 1]
    assert len(set(nearest[:, 0].tolist())) == 3


def test_a_centroid_is_the_direction_of_the_sum_of_its_vectors():
    vectors = normalize(np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32))
    centroids = fit(vectors, 8, seed=0, max_iter=500, tol=1e-6)
    nearest = assign(vectors, centroids)[0]
    sums = np.array([vectors[nearest == k].sum(axis=0) for k in range(len(centroids))])

    assert centroids == pytest.approx(normalize(sums), abs=1e-4)


def test_the_first_centroids_are_different_vectors():
    vectors = normalize(np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32))
    centroids = fit(np.repeat(vectors, 5, axis=0), 6, seed=3, max_iter=0, tol=0.0)

    assert sorted(map(tuple, centroids.tolist())) == sorted(map(tuple, vectors.tolist()))


def test_there_are_no_more_clusters_than_different_vectors():
    assert len(fit(np.repeat(clouds(size=1), 4, axis=0), 10, seed=0, max_iter=5, tol=1e-4)) == 3
    assert len(fit(clouds(size=1), 10, seed=0, max_iter=5, tol=1e-4)) == 3


def test_the_seed_decides():
    first, again, other = (fit(clouds(), 5, seed=seed, max_iter=3, tol=0.0).tolist() for seed in (1, 1, 2))

    assert first == again != other


def test_the_second_centroid_is_drawn_in_proportion_to_its_distance_from_the_first():
    angles = np.array([0.0, 0.7, np.pi])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    distance = 1 - vectors @ vectors.T
    expected = distance / distance.sum(axis=1, keepdims=True) / 3  # P(first, second)
    rounds = 3000
    found = np.zeros((3, 3))
    for seed in range(rounds):
        chosen = assign(fit(vectors, 2, seed=seed, max_iter=0, tol=0.0), vectors)[0]
        found[tuple(chosen)] += 1

    assert found / rounds == pytest.approx(expected, abs=5 * (0.25 / rounds) ** 0.5)


def test_it_ends_when_nothing_moves_any_more():
    vectors = clouds()

    assert (fit(vectors, 5, seed=1, max_iter=50, tol=9.0) == fit(vectors, 5, seed=1, max_iter=1, tol=0.0)).all()
    assert (fit(vectors, 5, seed=1, max_iter=2, tol=0.0) != fit(vectors, 5, seed=1, max_iter=1, tol=0.0)).any()
