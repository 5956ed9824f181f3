"""A straggler is run a second time; the first result counts, once, and nobody waits for the other."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.testing.virtual_run import Deed, VirtualRun, group

SLOW_S = 500.0


def run_with_a_slow_worker(*, may_run_twice=True, twice_slow=False, config=None):
    """Twenty tasks of a second for two workers; the first run of the last of them hangs, and so may the second."""

    def script(_, assignment):
        hangs = assignment.item_id == "p19" and (twice_slow or assignment.attempt == 0)
        return Deed(service_s=SLOW_S if hangs else 1.0)

    run = VirtualRun((group(0, may_run_twice=may_run_twice),), [1] * 20, script, config=config)
    run.join(cpus=2)
    run.run()
    run.check_books()
    return run


def kills(run):
    return [command for command in run.commands if isinstance(command, c.KillWorker)]


def test_the_second_run_of_a_straggler_ends_the_run():
    run = run_with_a_slow_worker()

    assert run.now < 20
    assert len(kills(run)) == 1


def test_a_stage_that_does_not_allow_it_is_waited_for():
    run = run_with_a_slow_worker(may_run_twice=False)

    assert run.now > SLOW_S
    assert kills(run) == []


def test_copies_can_be_turned_off():
    config = SchedulerConfig(num_sources=20, copies=False)

    assert run_with_a_slow_worker(config=config).now > SLOW_S


def test_a_task_that_is_long_by_itself_is_copied_once_and_the_first_run_wins():
    run = run_with_a_slow_worker(twice_slow=True)
    runs = [
        a.attempt for x in run.commands if isinstance(x, c.SendTask) for k in x.calls for a in k if a.item_id == "p19"
    ]

    assert runs == [0, 1]
    assert run.now < SLOW_S + 15
    assert len(kills(run)) == 1


def copied():
    """A scheduler in which task 2 of worker 1 has been copied to worker 0; its shadow has that number."""
    s = Scheduler(
        (group(0, num_workers=2, may_run_twice=True),), SchedulerConfig(num_sources=3, rescale_interval_s=1e9)
    )
    s.handle(e.NodeJoined(0, 2, (), 10**9))
    s.handle(e.WorkerReady(0), e.WorkerReady(1))
    items = tuple(e.SourceItem(i, f"p{i}", 1, f"<p{i}>") for i in range(3))
    s.handle(e.SourceListed(items), e.SourceExhausted())
    s.handle(e.Ticked(1.0), finished(1, 1))
    s.handle(e.Ticked(1.1), finished(0, 0))
    commands = s.handle(e.Ticked(10.0))
    invariants.check(s, commands)
    assert [type(x) for x in commands] == [c.DrainWorker, c.SendTask]
    return s, commands[1].calls[0][0].task


def finished(worker, task, *outputs):
    return e.TaskFinished(worker, task, outputs, 1.0, ())


def tell(s, *events):
    commands = s.handle(*events)
    invariants.check(s, commands)
    return commands


def committed(commands):
    return [x.root for x in commands if isinstance(x, c.Commit)]


def test_the_copy_wins_and_the_worker_with_the_straggler_is_stopped():
    s, copy = copied()
    commands = tell(s, e.Ticked(11.0), finished(0, copy))

    assert committed(commands) == [2]
    assert [x.worker for x in commands if isinstance(x, c.KillWorker)] == [1]
    late = e.Output(0, "late", 1, "<late>")
    assert tell(s, finished(1, 2, late)) == [c.Release("<late>")]


def test_the_straggler_wins_and_the_worker_with_the_copy_is_stopped():
    s, copy = copied()
    commands = tell(s, e.Ticked(11.0), finished(1, 2))

    assert committed(commands) == [2]
    assert [x.worker for x in commands if isinstance(x, c.KillWorker)] == [0]
    late = e.Output(0, "late", 1, "<late>")
    assert tell(s, finished(0, copy, late)) == [c.Release("<late>")]


@pytest.mark.parametrize(("copy_wins", "wasted_s"), [(True, 10.0), (False, 1.0)])
def test_the_time_of_the_run_that_came_second_is_wasted(copy_wins, wasted_s):
    s, copy = copied()
    tell(s, e.Ticked(11.0), finished(0, copy) if copy_wins else finished(1, 2))

    assert s.groups[0].book.wasted_s == wasted_s


@pytest.mark.parametrize(
    "ends", [lambda copy: e.TaskRaised(0, copy, "stage_0", "no"), lambda _: e.WorkerLost(0, "died")]
)
def test_a_copy_that_fails_leaves_the_straggler_its_chance(ends):
    s, copy = copied()
    tell(s, e.Ticked(11.0), ends(copy))

    assert committed(tell(s, e.Ticked(12.0), finished(1, 2))) == [2]


@pytest.mark.parametrize("end", [e.TaskRaised(1, 2, "stage_0", "no"), e.WorkerLost(1, "died")])
def test_a_straggler_that_fails_costs_nothing(end):
    s, copy = copied()
    tell(s, e.Ticked(11.0), end)

    assert committed(tell(s, e.Ticked(12.0), finished(0, copy))) == [2]


def test_a_result_that_comes_twice_counts_once():
    s, _ = copied()
    tell(s, e.Ticked(11.0), finished(1, 2))

    assert committed(tell(s, finished(1, 2))) == []


def test_a_straggler_that_begins_to_stream_can_no_longer_win():
    s, copy = copied()
    commands = tell(s, e.Ticked(11.0), e.TaskEmitted(1, 2, e.Output(0, "a", 1, "<a>")))
    assert commands == [c.Release("<a>"), c.KillWorker(1, "another worker was faster with the same task")]

    assert committed(tell(s, e.Ticked(12.0), finished(1, 2, e.Output(1, "b", 1, "<b>")))) == []
    assert committed(tell(s, finished(0, copy))) == [2]
