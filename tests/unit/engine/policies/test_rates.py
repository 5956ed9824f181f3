"""Rates count useful time, see stragglers early and follow a change."""

import pytest

from gristmill.engine.policies.rates import MEASURED, MEMORY_S, Prior, Rate, remaining_visits


def rate_of(*seconds, outputs=1):
    rate = Rate()
    for each in seconds:
        rate.add(each, outputs)
    return rate


def test_a_rate_is_tasks_per_second_of_work():
    assert rate_of(2.0, 2.0, 2.0).per_worker() == pytest.approx(0.5)


def test_a_straggler_lowers_the_rate_before_it_has_ended():
    rate = rate_of(1.0, 1.0)

    assert rate.per_worker([8.0]) < rate.per_worker()


def test_a_straggler_counts_with_the_time_beyond_the_mean():
    assert rate_of(2.0, 2.0, 2.0).per_worker([8.0, 1.0]) == pytest.approx(3 / (3 * 2.0 + 6.0), rel=0.02)


def test_tasks_of_no_time_have_a_rate_too():
    assert rate_of(*[0.001] * 8).per_worker() == pytest.approx(1000)
    assert rate_of(0.0).per_worker() > 1e8


def test_tasks_under_way_as_usual_change_nothing():
    rate = rate_of(*[1.0] * 100)

    assert rate.per_worker([0.9] * 1000) == pytest.approx(rate.per_worker())


def test_what_runs_first_bounds_the_rate_before_it_has_ended():
    assert Rate().per_worker([20.0]) == pytest.approx(1 / 20)


def test_a_rate_is_believed_after_a_few_completions():
    assert not rate_of(*[1.0] * (MEASURED - 1)).is_known
    assert rate_of(*[1.0] * MEASURED).is_known


def test_a_change_is_followed_within_a_hundred_tasks():
    assert rate_of(*[1.0] * 500, *[4.0] * 100).per_worker() == pytest.approx(0.25, rel=0.25)


def test_with_many_workers_an_estimate_rests_on_seconds_and_not_on_a_number_of_tasks():
    rate = Rate()
    for seconds in [1.0] * 5000 + [4.0] * 100:  # a hundred tasks of a hundred workers: a second
        rate.add(seconds, 1, workers=100)

    assert rate.per_worker() == pytest.approx(1 / (1 + 3 / MEMORY_S), rel=0.05)


def test_an_estimate_of_quick_tasks_rests_on_seconds_too():
    rate = rate_of(*[0.001] * 5000, *[0.004] * 100)  # the hundred took less than half a second

    assert rate.per_worker() == pytest.approx(5100 / (5000 * 0.001 + 100 * 0.004), rel=0.05)


def test_fan_out_is_one_until_it_is_known():
    assert Rate().fan_out() == 1.0
    assert rate_of(1.0, 1.0, outputs=3).fan_out() == pytest.approx(3.0)


def test_a_group_is_visited_by_what_it_has_and_what_upstream_becomes():
    assert remaining_visits([1, 2, 0], [2.0, 0.5, 1.0], 4) == [5.0, 12.0, 6.0]


def test_nothing_arrives_when_upstream_has_drained():
    assert remaining_visits([0, 3], [5.0, 1.0], 0) == [0.0, 3.0]


def test_a_prior_is_believed_at_once_and_counts_as_much_as_a_few_completions():
    rate = Rate.starting_from(Prior(rate=2.0, fan_out=3.0))
    assert rate.is_known
    assert (rate.per_worker(), rate.fan_out()) == (2.0, 3.0)

    for _ in range(MEASURED):
        rate.add(2.0, 1)
    assert rate.per_worker() == pytest.approx(1 / 1.25, rel=0.05)
    assert rate.fan_out() == pytest.approx(2.0, rel=0.05)


def test_a_wrong_prior_is_forgotten():
    rate = Rate.starting_from(Prior(rate=100.0))
    for _ in range(300):
        rate.add(2.0, 1)

    assert rate.per_worker() == pytest.approx(0.5, rel=0.01)
