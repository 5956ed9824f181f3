"""Workers are looked after when it is time, and only those that need it."""

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.engine.state import WorkerState
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import group


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
