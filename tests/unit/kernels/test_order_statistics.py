"""Order statistics equal those of a sorted list, however little may be held; buckets and quantiles follow from them."""

import bisect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.kernels.order_statistics import (
    bucket_numbers,
    edge_ranks,
    numbers_of_bits,
    order_statistics,
    ordered_bits,
    quantiles,
    table_ranks,
)

doubles = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 0.5, math.inf, -math.inf])
few_values = st.lists(st.sampled_from([0.0, 0.25, 1.0, 7.5]), min_size=1, max_size=60)
many_values = st.lists(doubles, min_size=1, max_size=60) | few_values


def pieces(values, size):
    array = np.array(values, np.float64)
    return lambda: (array[start : start + size] for start in range(0, len(array), size))


@given(values=many_values, held=st.sampled_from([0, 1, 10, 1000]), counters=st.sampled_from([2, 64, 1 << 16]))
def test_every_rank_has_the_number_of_the_sorted_list(values, held, counters):
    ranks = np.arange(len(values))[::-1]
    total, found = order_statistics(pieces(values, 7), lambda total: ranks, held=held, counters=counters)

    assert total == len(values)
    assert found.tolist() == sorted(values, reverse=True)


@given(values=many_values)
def test_bits_compare_as_numbers_do_and_turn_back_into_them(values):
    keys = ordered_bits(np.array(values))

    assert numbers_of_bits(keys).tolist() == values
    assert np.sort(keys).tolist() == ordered_bits(np.array(sorted(values))).tolist()


def test_no_numbers_have_no_ranks():
    total, found = order_statistics(list, lambda total: edge_ranks(total, 20))

    assert (total, found.tolist()) == (0, [])


def test_numbers_that_cannot_be_held_are_read_several_times_and_never_collected():
    values = np.random.default_rng(1).random(100_000)
    passes = []

    def chunks():
        passes.append(1)
        return iter(np.array_split(values, 50))

    _, found = order_statistics(chunks, lambda total: edge_ranks(total, 20), held=2_000, counters=1 << 12)

    assert found.tolist() == np.sort(values)[edge_ranks(len(values), 20)].tolist()
    assert 3 <= len(passes) <= 5


@pytest.mark.parametrize(("total", "buckets"), [(10_000, 20), (10_007, 20), (19, 20), (1, 3), (41, 7)])
def test_no_bucket_of_different_numbers_is_off_by_as_much_as_one(total, buckets):
    values = np.random.default_rng(total).permutation(total).astype(np.float64)
    edges = np.sort(values)[edge_ranks(total, buckets)]
    sizes = np.bincount(bucket_numbers(values, edges), minlength=buckets)

    assert np.abs(sizes - total / buckets).max() < 1


@pytest.mark.parametrize(
    ("score", "bucket"),
    [(-1.0, 0), (0.0, 1), (0.5, 1), (1.0, 3), (1.5, 4), (2.0, 5), (9.0, 5)],
    ids=str,
)
def test_a_number_at_an_edge_is_above_it_and_at_several_in_the_middle(score, bucket):
    edges = np.array([0.0, 1.0, 1.0, 1.0, 2.0])

    assert bucket_numbers(np.array([score]), edges).tolist() == [bucket]


def test_equal_numbers_are_in_the_middle_and_not_on_top():
    edges = np.full(19, 0.25)

    assert bucket_numbers(np.array([0.25]), edges).tolist() == [10]


@given(values=many_values, asked=st.lists(doubles, min_size=1, max_size=20))
def test_quantiles_rise_with_the_number_and_stay_between_0_and_1(values, asked):
    table = np.sort(np.array(values))[table_ranks(len(values), 50)]
    found = quantiles(np.array(sorted(asked)), table)

    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert (np.diff(found) >= 0).all()


def test_a_quantile_is_the_share_below():
    values = np.random.default_rng(3).normal(size=5_000)
    ordered = sorted(values.tolist())
    found = quantiles(values, np.sort(values)[table_ranks(len(values), 1000)])
    exact = np.array([bisect.bisect_left(ordered, value) / (len(ordered) - 1) for value in values.tolist()])

    assert np.abs(found - exact).max() <= 1 / 1000


def test_a_number_that_everything_equals_is_at_the_middle():
    assert quantiles(np.array([3.0]), np.full(1001, 3.0)).tolist() == [0.5]
