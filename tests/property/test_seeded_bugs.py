"""Three mistakes somebody might make in the core, each found by the machine of `test_scheduler_machine`.

If one is not found any more, the machine or the invariants have become blind, and their being green means nothing.
"""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test
from tests.property.test_scheduler_machine import SchedulerMachine

from gristmill.engine import commands as c
from gristmill.engine.dispatch import MemoryBook
from gristmill.engine.scheduler import Scheduler
from gristmill.errors import EngineBug
from gristmill.stages.resources import Resources

SEARCH = settings(
    derandomize=True,
    deadline=None,
    max_examples=400,
    stateful_step_count=60,
    phases=[Phase.generate],  # that it is found is enough; nobody reads the smallest example
    report_multiple_bugs=False,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


class CrampedMachine(SchedulerMachine):
    """The same where memory is what everybody waits for, so that mistakes about it do not take long to show."""

    @initialize(sources=st.lists(st.integers(20, 60), min_size=8, max_size=12), seed=st.integers(0, 1000))
    def start(self, sources, seed):
        shapes = [(1, Resources(cpus=0.5))] * 3
        super().start(shapes=shapes, sources=sources, seed=seed, memory=1000)


class BriefMachine(SchedulerMachine):
    """The same with little to do, so that commits, and messages about them, are much of what happens."""

    @initialize(sources=st.lists(st.integers(0, 60), min_size=6, max_size=8))
    def start(self, sources):
        super().start(shapes=[(1, Resources())], sources=sources, seed=0, memory=10**9)


def leave_no_room_for_the_next_group(monkeypatch):
    """Off by one in lane accounting: the lane of the group right after is not kept free."""
    right = MemoryBook._unmet
    monkeypatch.setattr(MemoryBook, "_unmet", lambda book, node, group: right(book, node, group + 1))


def forget_what_has_to_pause(monkeypatch):
    """A lost requeue: a task that is to be tried again after a pause is put nowhere."""
    right = Scheduler._requeue

    def requeue(scheduler, task):
        right(scheduler, task)
        scheduler.groups[task.group].delayed.clear()

    monkeypatch.setattr(Scheduler, "_requeue", requeue)


def count_every_message_about_a_commit(monkeypatch):
    """A commit counted twice: a repeated Committed is taken for another."""

    def committed(scheduler, event):
        if event.root in scheduler.committing:
            del scheduler.committing[event.root]
            scheduler.out.append(c.Publish(event.root))
        scheduler.partitions_done += 1

    monkeypatch.setattr(Scheduler, "_committed", committed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "machine", "finding"),
    [
        (leave_no_room_for_the_next_group, CrampedMachine, "I2 bytes of node"),
        (forget_what_has_to_pause, SchedulerMachine, "I3 live tasks of group"),
        (count_every_message_about_a_commit, BriefMachine, "expected . partitions to be done; got"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_found(monkeypatch, plant, machine, finding):
    plant(monkeypatch)

    with pytest.raises(EngineBug, match=finding):
        run_state_machine_as_test(machine, settings=SEARCH)
