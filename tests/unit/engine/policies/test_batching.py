"""How many tasks a worker holds, and when an incomplete batch goes."""

import pytest

from gristmill.engine.dispatch import FLUSH_S, MAX_PREFETCH, batch_of, slots, tail_share


@pytest.mark.parametrize(
    ("mean_service_s", "batch_size", "share", "expected"),
    [
        (None, 1, None, 1),
        (None, 8, None, 8),
        (10.0, 1, None, 2),
        (10.0, 8, None, 16),
        (10.0, 8, 12, 12),
        (10.0, 8, 2, 8),
        (10.0, 1, 1, 1),
        (0.0, 1, None, 1 + MAX_PREFETCH),
        (0.0, 1, 100, 100),
        (0.001, 1, None, 1 + 6),
    ],
)
def test_a_worker_holds_what_runs_and_what_bridges_the_round_trip(mean_service_s, batch_size, share, expected):
    assert slots(mean_service_s, batch_size=batch_size, share=share) == expected


@pytest.mark.parametrize(("remaining", "workers", "share"), [(0, 3, 0), (1, 3, 1), (12, 3, 1), (13, 3, 2), (8, 0, 2)])
def test_at_the_tail_a_worker_takes_a_quarter_of_its_part_at_a_time(remaining, workers, share):
    assert tail_share(remaining, workers) == share


def size(queued, batch_size=8, remaining=1000, workers=2, more_coming=True, oldest_wait_s=0.0):
    return batch_of(
        queued,
        batch_size=batch_size,
        remaining=remaining,
        workers=workers,
        more_coming=more_coming,
        oldest_wait_s=oldest_wait_s,
    )


def test_nothing_queued_is_nothing_sent():
    assert size(0, more_coming=False) == 0


def test_single_tasks_go_at_once():
    assert size(3, batch_size=1) == 1


def test_a_batch_waits_for_company():
    assert size(7) == 0
    assert size(8) == 8
    assert size(20) == 8


def test_an_incomplete_batch_goes_when_its_oldest_task_has_waited():
    assert size(3, oldest_wait_s=FLUSH_S) == 3


def test_nothing_waits_once_upstream_is_done():
    assert size(3, more_coming=False, remaining=100) == 3


def test_batches_shrink_at_the_tail():
    assert size(20, more_coming=False, remaining=24) == 3
    assert size(5, more_coming=False, remaining=5) == 1
