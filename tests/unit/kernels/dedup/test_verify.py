"""Verification equals the greedy definition, forms stars, and does bounded work in crowded buckets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.deduplication.candidates import verify

pytestmark = pytest.mark.slow  # the kernel is compiled first

shingle_lists = st.lists(st.sets(st.integers(0, 9), min_size=1), min_size=1, max_size=8)


def decide(buckets, documents, *, threshold=0.5, fixed=(), **options):
    values = np.concatenate([sorted(own) for own in documents]).astype(np.uint32)
    bounds = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    numbers = np.array(buckets, np.int64)
    marks = np.isin(np.arange(len(documents)), list(fixed))
    return verify(numbers, int(numbers.max()) + 1, (values, bounds), marks, threshold, **options)


def by_definition(buckets, documents, threshold):
    """Best first: lose to the most similar kept document that shares a bucket, if it is similar enough."""
    kept, lost_to = [], []
    for i, own in enumerate(documents):
        similar = [
            (-len(own & documents[j]) / len(own | documents[j]), j)
            for j in kept
            if any(a == b for a, b in zip(buckets[i], buckets[j], strict=True))
        ]
        similar = [pair for pair in similar if -pair[0] >= threshold]
        lost_to.append(min(similar)[1] if similar else -1)
        if not similar:
            kept.append(i)
    return lost_to


@settings(deadline=None)
@given(documents=shingle_lists, data=st.data(), threshold=st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_it_equals_the_definition(documents, data, threshold):
    row = st.tuples(st.integers(0, 2), st.integers(3, 5))  # two bands with buckets of their own
    buckets = data.draw(st.lists(row, min_size=len(documents), max_size=len(documents)))
    _, lost_to, similarity, shared, _ = decide(buckets, documents, threshold=threshold)

    assert lost_to.tolist() == by_definition(buckets, documents, threshold)
    for i, j in enumerate(lost_to):
        if j >= 0:
            assert similarity[i] == len(documents[i] & documents[j]) / len(documents[i] | documents[j])
            assert shared[i] == sum(a == b for a, b in zip(buckets[i], buckets[j], strict=True))


@settings(deadline=None)
@given(documents=shingle_lists, most=st.integers(1, 4))
def test_of_too_many_it_compares_with_those_that_share_most_bands_then_with_the_best(documents, most):
    buckets = [[0, 1 + (i % 2), 3 + (i % 3)] for i in range(len(documents))]
    made = decide(buckets, documents, threshold=2, max_compared=most)  # nobody loses, everybody is compared
    for i, own in enumerate(documents):
        shared = [sum(a == b for a, b in zip(buckets[i], buckets[j], strict=True)) for j in range(i)]
        compared = sorted(range(i), key=lambda j: (-shared[j], j))[:most]
        expected = max([len(own & documents[j]) / len(own | documents[j]) for j in compared], default=0)
        assert made.similarity[i] in (expected, 0)  # 0 where sizes differ too much to look


def test_containment_measures_what_share_of_a_document_the_kept_one_has():
    documents = [set(range(10)), {1, 2, 3, 50}, {*range(10), *range(20, 40)}]
    made = decide([[0]] * 3, documents, threshold=0.7, containment=True)
    assert made.lost_to.tolist() == [-1, 0, -1]  # a part loses to the whole, the whole not to its part
    assert made.similarity.tolist() == [0, 0.75, 1 / 3]


def test_a_chain_of_small_differences_removes_only_neighbours_of_what_is_kept():
    documents = [set(range(i, i + 10)) for i in range(0, 12, 2)]  # neighbours 8/12 similar, the next ones 6/14
    _, lost_to, _, _, _ = decide([[0]] * 6, documents, threshold=0.6)
    assert lost_to.tolist() == [-1, 0, -1, 2, -1, 4]


def test_a_document_of_an_index_never_loses():
    _, lost_to, _, _, _ = decide([[0]] * 3, [{1, 2}] * 3, fixed=(0, 1))
    assert lost_to.tolist() == [-1, -1, 0]


def test_a_crowded_bucket_is_counted_and_does_not_grow():
    documents = [{i, 100 + i} for i in range(20)]
    _, lost_to, _, _, full = decide([[0]] * 20, documents, max_kept=5)
    assert (lost_to == -1).all()
    assert full.tolist() == [15]


def test_a_document_that_stays_knows_what_it_is_most_similar_to():
    nearest, lost_to, similarity, _, _ = decide([[0]] * 3, [{1, 2, 3, 4}, {1, 2, 3, 9}, {1, 2, 8, 9}], threshold=0.7)
    assert lost_to.tolist() == [-1, -1, -1]
    assert nearest.tolist() == [-1, 0, 1]
    assert similarity.tolist() == [0, 0.6, 0.6]
