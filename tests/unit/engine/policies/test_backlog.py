"""A group runs ahead of the next one for as long as starting a worker takes, and no further."""

import pytest

from gristmill.engine.policies.rates import MAX_BACKLOG_S, MAX_UNMEASURED, SETUPS, is_far_ahead


def far_ahead(queued, *, workers=10, batch_size=1, mean_service_s=1.0, setup_s=0.0):
    return is_far_ahead(queued, workers=workers, batch_size=batch_size, mean_service_s=mean_service_s, setup_s=setup_s)


def test_a_group_pauses_when_the_next_one_has_work_for_longer_than_a_change_takes():
    assert not far_ahead(10 * int(MAX_BACKLOG_S))
    assert far_ahead(10 * int(MAX_BACKLOG_S) + 1)


def test_the_longer_a_worker_takes_to_start_the_more_may_wait_for_it():
    allowed = 10 * int(MAX_BACKLOG_S + SETUPS * 40)

    assert not far_ahead(allowed, setup_s=40.0)
    assert far_ahead(allowed + 1, setup_s=40.0)


def test_nobody_pauses_for_a_group_that_has_done_nothing_yet_until_the_driver_would_suffer():
    assert not far_ahead(MAX_UNMEASURED, mean_service_s=None)
    assert far_ahead(MAX_UNMEASURED + 1, mean_service_s=None)


@pytest.mark.parametrize(("workers", "batch_size", "enough"), [(1, 1, 16), (100, 1, 200), (4, 8, 64), (0, 1, 16)])
def test_what_is_handed_out_at_once_is_never_too_much(workers, batch_size, enough):
    assert not far_ahead(enough, workers=workers, batch_size=batch_size, mean_service_s=1e6)
    assert far_ahead(enough + 1, workers=workers, batch_size=batch_size, mean_service_s=1e6)
