"""Tasks are counted by how long they took, in slots that are the same everywhere."""

import itertools

import pytest

from gristmill.metrics.pace import BOUNDS, NUM_SLOTS, Latency, quantile


def counted(*seconds):
    latency = Latency()
    for each in seconds:
        latency.add(each)
    return latency


def test_bounds_are_powers_of_four_from_a_millisecond_on():
    assert len(BOUNDS) == 11
    assert all(b / a == pytest.approx(4, rel=0.02) for a, b in itertools.pairwise(BOUNDS))


@pytest.mark.parametrize("slot", range(len(BOUNDS)))
def test_a_bound_belongs_to_the_slot_it_ends(slot):
    assert counted(BOUNDS[slot]).counts.index(1) == slot
    assert counted(BOUNDS[slot] * 1.001).counts.index(1) == slot + 1


def test_whatever_took_longer_is_counted_too():
    latency = counted(0.0, 5000.0)

    assert latency.counts == [1] + [0] * (NUM_SLOTS - 2) + [1]
    assert latency.sum_s == 5000.0


def test_a_quantile_lies_in_the_slot_of_the_value():
    latency = counted(*[0.002] * 90, *[3.0] * 10)

    assert 0.001 <= quantile(latency.counts, 0.5) <= 0.004
    assert 1.0 <= quantile(latency.counts, 0.95) <= 4.0
    assert quantile(counted(9999.0).counts, 0.5) == BOUNDS[-1]
    assert quantile([0] * NUM_SLOTS, 0.5) is None
