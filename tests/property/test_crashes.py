"""A crash after any event, and a restart, give the same outputs and books (I4)."""

import pytest
from tests.property.budget import SEEDS
from tests.property.crashes import check_crashes, ledgers_after_every_event, whole_run

BLOCKS = 8


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_crash_after_any_event_changes_nothing_in_the_end(block):
    crashes = sum(check_crashes(seed) for seed in range(block, SEEDS, BLOCKS))

    assert crashes > 10 * SEEDS / BLOCKS


def test_some_of_the_runs_are_in_trouble_and_some_ledgers_are_torn():
    runs = [whole_run(seed) for seed in range(20)]

    assert sum(len(run.events) for run in runs) > 1000
    assert any("\n" not in lines[-1] for run in runs for lines in ledgers_after_every_event(run) if lines)
    assert {type(event).__name__ for run in runs for event in run.events} >= {"TaskRaised", "WorkerLost"}
