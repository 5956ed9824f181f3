"""A tally knows its values to 3.1 %, whatever the order they came in, and takes what it was given back."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.metrics.snapshot import StageCounts
from gristmill.metrics.tally import NOT_A_NUMBER, Distribution, edge_of, metric_lines, slot_of, tallied

numbers = st.one_of(st.floats(), st.integers(-(10**30), 10**30))
usual = st.one_of(st.floats(2.0**-40, 2.0**39), st.floats(-(2.0**39), -(2.0**-40)), st.just(0.0))


@given(usual)
def test_what_is_known_of_a_value_is_at_most_one_part_in_32_nearer_to_zero(value):
    known = edge_of(slot_of(value))

    assert abs(known) <= abs(value) <= abs(known) * (1 + 1 / 32)
    assert math.copysign(1, known) == math.copysign(1, value)


@given(usual, usual)
def test_slots_are_in_the_order_of_the_values(one, other):
    assert (slot_of(one) <= slot_of(other)) or one > other


def test_whole_numbers_up_to_64_are_exact():
    assert [edge_of(slot_of(n)) for n in range(-64, 65)] == list(range(-64, 65))


@given(st.lists(numbers, max_size=50))
def test_an_array_is_as_good_as_its_values_one_by_one(values):
    apart = {}
    for value in values:
        for slot, number in tallied(value).items():
            apart[slot] = apart.get(slot, 0) + number

    assert tallied([float(value) for value in values]) == apart
    assert tallied(iter(values)) == apart


@pytest.mark.parametrize(
    ("value", "slot"),
    [
        (float("nan"), NOT_A_NUMBER), (0, 0), (-0.0, 0), (False, 0), (float("inf"), 2592), (-math.inf, -2592),
        (1e300, 2592), (5e-324, 1), (-1e-300, -1), (2.0**40, 2592),
    ],
)  # fmt: skip
def test_what_lies_beyond_has_a_slot_too(value, slot):
    assert tallied(value) == {slot: 1}
    assert tallied(np.array([value])) == {slot: 1}


def test_a_whole_number_that_is_no_float_is_as_large_as_can_be():
    assert (tallied(10**400), tallied(-(10**400))) == ({2592: 1}, {-2592: 1})


@pytest.mark.parametrize(
    "values",
    [np.arange(5), np.arange(5, dtype=np.float32).reshape(1, 5), pa.array(range(5)), (0, 1, 2, 3, 4), range(5)],
)
def test_arrays_of_any_kind_are_taken(values):
    assert Distribution(tallied(values)).to_json() == {
        "values": 5, "least": 0.0, "p50": 2.0, "p90": 4.0, "p99": 4.0, "greatest": 4.0,
    }  # fmt: skip


def test_nulls_are_counted_and_left_out():
    found = Distribution(tallied(pa.chunked_array([[1, None], [3]])))

    assert (found.num_values, found.num_not_numbers, found.greatest) == (2, 1, 3.0)
    assert str(found) == "values 2, least 1, p50 1, p90 3, p99 3, greatest 3, not numbers 1"
    assert math.isnan(Distribution(tallied([math.nan])).quantile(0.5))
    assert Distribution({}).to_json() == {"values": 0}


@pytest.mark.parametrize("value", ["12", b"12", "x", None, [1, "x"], object()])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        tallied(value)


def test_quantiles_are_those_of_the_values_whatever_the_order_and_the_number_of_workers():
    chance = random.Random(3)
    values = [chance.lognormvariate(0, 2) for _ in range(5000)]
    exact = np.quantile(values, [0.0, 0.1, 0.5, 0.9, 0.99, 1.0], method="inverted_cdf")
    seen = set()
    for workers in (1, 7, 100):
        chance.shuffle(values)
        parts = [StageCounts(observed={"x": tallied(values[n::workers])}) for n in range(workers)]
        total = StageCounts()
        for part in chance.sample(parts, workers):
            total.add(part)
        found = Distribution(total.observed["x"])
        seen.add(tuple(sorted(found.slots.items())))
        quantiles = [found.quantile(share) for share in (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)]
        assert all(low <= true <= low * (1 + 1 / 32) for low, true in zip(quantiles, exact, strict=True))

    assert len(seen) == 1


def test_a_share_is_between_0_and_1():
    with pytest.raises(ValueError, match=r"^quantile: expected a share from 0 to 1; got 50$"):
        Distribution({1: 1}).quantile(50)


def test_metrics_are_a_line_each_for_a_terminal():
    lines = metric_lines("fetch", {"retries": 1200, "hits": 2.5}, {"s": {"values": 3, "p50": 0.12345, "greatest": 2.0}})

    assert lines == ["fetch: hits 2.5", "fetch: retries 1,200", "fetch: s: values 3, p50 0.1235, greatest 2"]
