"""Workers are looked after when it is time, and only those that need it."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.engine.state import WorkerState
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def at_work(*groups, num_workers, num_gpus=0, **config):
    """A scheduler whose first `num_workers` workers are ready and have tasks, as far as they are of the first group."""
    s = Scheduler(groups, SchedulerConfig(num_sources=9, rescale_interval_s=1e9, **config))
    s.handle(e.NodeJoined(0, 4, (8.0,) * num_gpus, 10**9))
    s.handle(*(e.WorkerReady(number) for number in range(num_workers)))
    s.handle(e.SourceListed(tuple(e.SourceItem(n, f"p{n}", 1, n) for n in range(9))))
    return s


def kind(commands, wanted):
    return [command for command in commands if isinstance(command, wanted)]


def running(s, worker):
    return next(iter(s.fleet.find(worker).assigned))


def test_a_deadline_is_kept_beside_a_group_that_has_none():
    s = at_work(group(0, num_workers=1, deadline_s=5.0), group(1, num_workers=1), num_workers=2)
    s.handle(e.Ticked(1.0))

    assert [kill.worker for kill in kind(s.handle(e.Ticked(5.5)), c.KillWorker)] == [0]


def test_only_the_worker_that_is_slow_is_mentioned():
    s = at_work(group(0, num_workers=2), num_workers=2, watchdog_s=10.0)
    s.handle(e.Ticked(9.0), e.TaskFinished(0, running(s, 0), (), 0.1, ()))

    assert [warning.worker for warning in kind(s.handle(e.Ticked(10.5)), c.Warn)] == [1]


def test_one_that_stays_slow_is_mentioned_again_after_twice_as_long():
    s = at_work(group(0, num_workers=1), num_workers=1, watchdog_s=10.0)

    warned = [now for now in range(1, 60) if kind(s.handle(e.Ticked(float(now))), c.Warn)]
    assert warned == [11, 23, 47]


def test_workers_that_do_not_get_ready_are_mentioned_one_for_all_of_their_group():
    s = at_work(group(0, num_workers=3), group(1, num_workers=1), num_workers=1, watchdog_s=10.0)
    s.handle(e.Ticked(5.0), e.TaskFinished(0, running(s, 0), (), 0.1, ()))

    warned = [(now, kind(s.handle(e.Ticked(float(now))), c.Warn)) for now in range(6, 60)]
    set_up = [(now, w.worker, w.others) for now, found in warned for w in found if w.doing == "set-up"]
    assert set_up == [(11, 1, 1), (11, 3, 0), (23, 1, 1), (23, 3, 0), (47, 1, 1), (47, 3, 0)]


def test_a_slow_first_task_is_mentioned_as_soon_as_any_other_after_a_slow_set_up():
    s = at_work(group(0, num_workers=1), num_workers=0, watchdog_s=10.0)
    assert kind(s.handle(e.Ticked(11.0)), c.Warn) == [c.Warn(0, -1, "", 11.0, 0, "set-up")]

    s.handle(e.Ticked(12.0), e.WorkerReady(0, 12.0))
    assert [w.doing for w in kind(s.handle(e.Ticked(23.0)), c.Warn)] == ["task"]


def test_a_worker_that_does_not_end_is_mentioned():
    s = at_work(group(0, num_workers=1), num_workers=1, watchdog_s=10.0)
    s.handle(e.SourceExhausted())
    while s.tasks:
        s.handle(e.TaskFinished(0, running(s, 0), (), 0.1, ()))
    assert s.fleet.find(0).state is WorkerState.DRAINING

    assert kind(s.handle(e.Ticked(10.5)), c.Warn) == [c.Warn(0, -1, "", 10.5, 0, "end")]
    assert kind(s.handle(e.Ticked(15.0)), c.Warn) == []
    s.handle(e.Ticked(16.0), e.WorkerExited(0))
    assert kind(s.handle(e.Ticked(90.0)), c.Warn) == []


def test_workers_that_are_only_old_are_replaced_so_long_apart_even_if_the_old_one_has_to_go_first():
    shape = group(0, num_workers=2, resources=Resources(gpus=1))
    s = at_work(shape, num_workers=2, num_gpus=2, worker_max_lifetime_s=10.0, worker_restart_interval_s=60.0)
    assert kind(s.handle(e.Ticked(61.0)), c.DrainWorker) == [c.DrainWorker(0)]

    s.handle(e.Ticked(62.0), e.TaskFinished(0, running(s, 0), (), 1.0, ()), e.WorkerExited(0))
    s.handle(e.Ticked(63.0), e.WorkerReady(2))
    assert kind(s.handle(e.Ticked(120.0)), c.DrainWorker) == []
    assert kind(s.handle(e.Ticked(122.0)), c.DrainWorker) == [c.DrainWorker(1)]


def streaming(script, **options):
    """Run a group that streams, with a deadline of two seconds, into one that takes its time."""
    groups = (group(0, num_workers=1, deadline_s=2.0, **options), group(1, num_workers=1))
    run = VirtualRun(groups, [1] * 3, script)
    run.join(cpus=2, memory_bytes=100)
    run.run()
    return run


@pytest.mark.parametrize("lanes", [1, 2])
def test_waiting_for_the_next_group_does_not_count_against_the_deadline_of_a_stream(lanes):
    def script(index, _assignment):
        return Deed((40,) * 6, streamed=6, service_s=0.7) if index == 0 else Deed(service_s=9.0)

    run = streaming(script, lanes=lanes)
    run.check_books()

    assert kind(run.commands, c.KillWorker) == []
    assert kind(run.commands, c.Warn) == []
    assert run.now > 6 * 3 * 9.0  # it did wait


def test_a_stream_may_take_longer_than_the_deadline_of_one_of_its_outputs():
    def script(index, _assignment):
        return Deed((1,) * 20, streamed=20, service_s=21.0) if index == 0 else Deed()

    run = streaming(script)
    run.check_books()

    assert kind(run.commands, c.KillWorker) == []


@pytest.mark.parametrize("gone_on", [0, 2])
def test_a_stream_that_gives_nothing_for_longer_than_its_deadline_is_ended(gone_on):
    """The first time it hangs, after some outputs; then it goes through."""

    def script(index, assignment):
        if index == 1:
            return Deed()
        hangs = assignment.item_id == "p1" and not assignment.attempt
        return Deed((1,) * 3, streamed=gone_on, service_s=2.5 * (gone_on + 1) if hangs else 0.1)

    run = streaming(script)
    run.check_books()

    assert [kill.reason for kill in kind(run.commands, c.KillWorker)] == ["no result within the deadline of 2 s"]


def test_an_output_that_is_repeated_does_not_put_a_deadline_off():
    s = at_work(group(0, num_workers=1, deadline_s=5.0), group(1, num_workers=1), num_workers=2)
    emitted = e.TaskEmitted(0, running(s, 0), e.Output(0, "p0.0", 1, 100))
    s.handle(e.Ticked(3.0), emitted)
    assert kind(s.handle(e.Ticked(6.0), emitted), c.KillWorker) == []

    assert [kill.worker for kill in kind(s.handle(e.Ticked(8.5)), c.KillWorker)] == [0]


def test_a_stage_without_a_deadline_may_take_its_time_behind_one_that_has_a_deadline():
    s = at_work(group(0, num_workers=1, deadline_s=2.0), num_workers=1)
    task = running(s, 0)
    s.handle(e.Ticked(1.0), e.TaskStepped(0, task, unhurried=True))
    assert kind(s.handle(e.Ticked(50.0)), c.KillWorker) == []

    s.handle(e.Ticked(51.0), e.TaskStepped(0, task))
    assert kind(s.handle(e.Ticked(52.9)), c.KillWorker) == []
    assert [kill.worker for kill in kind(s.handle(e.Ticked(53.1)), c.KillWorker)] == [0]


def test_the_next_task_of_a_worker_has_a_deadline_though_the_last_one_ended_in_a_stage_without():
    s = at_work(group(0, num_workers=1, deadline_s=2.0), num_workers=1)
    task = running(s, 0)
    s.handle(e.Ticked(1.0), e.TaskStepped(0, task, unhurried=True))
    s.handle(e.Ticked(9.0), e.TaskFinished(0, task, (), 9.0, ()))

    assert running(s, 0) != task
    assert [kill.worker for kill in kind(s.handle(e.Ticked(11.1)), c.KillWorker)] == [0]
