"""Tasks go where they are done soonest: nobody is idle beside a task that waits behind another."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.dispatch import PREFETCH_S, slots
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def of_kind(commands, kind):
    return [command for command in commands if isinstance(command, kind)]


def with_one_long_task(long_s):
    """Forty tasks of a second for two workers, but for the sixth."""
    run = VirtualRun((group(0),), [1] * 40, lambda _, a: Deed(service_s=long_s if a.item_id == "p5" else 1.0))
    run.join(cpus=2)
    run.run()
    run.check_books()
    return run


def test_what_waits_behind_a_long_task_is_taken_back_for_an_idle_worker():
    run = with_one_long_task(100.0)

    assert len(of_kind(run.commands, c.RecallTask)) == 1
    assert run.now < 110


def test_what_waits_behind_a_long_task_is_taken_back_though_more_is_to_be_listed():
    s = Scheduler((group(0, num_workers=2),), SchedulerConfig(num_sources=100, rescale_interval_s=1e9))
    s.handle(e.NodeJoined(0, 2, (), 10**9))
    s.handle(e.WorkerReady(0), e.WorkerReady(1))
    s.handle(e.SourceListed(tuple(e.SourceItem(i, f"p{i}", 1, f"<p{i}>") for i in range(9))))
    commands = []
    for now in range(1, 20):
        if own := list(s.fleet.find(0).assigned):
            commands += s.handle(e.Ticked(float(now)), e.TaskFinished(0, own[0], (), 1.0, ()))

    assert not s.source_exhausted
    assert [recall.worker for recall in of_kind(commands, c.RecallTask)] == [1]
    assert len(held(s)[1]) == 1  # which it runs


@pytest.mark.parametrize("mean_service_s", [None, 0.0, 0.001, PREFETCH_S, PREFETCH_S * 1.001, 0.1, 60.0])
@pytest.mark.parametrize("options", [{}, {"batch_size": 7}, {"lanes": 4}, {"batch_size": 64, "batch_items": 100}])
def test_what_a_worker_may_hold_is_what_the_rule_says_though_it_is_not_always_asked(mean_service_s, options):
    s = Scheduler((group(0, num_workers=2, **options),), SchedulerConfig(num_sources=9, rescale_interval_s=1e9))
    s.groups[0].mean_service_s = mean_service_s
    size = 1 if "batch_items" in options else options.get("batch_size", 1)

    expected = slots(mean_service_s, batch_size=size, lanes=options.get("lanes", 1))
    assert s.dispatcher.slots(s.groups[0], more_coming=True) == expected


def test_nothing_is_taken_back_where_all_tasks_are_alike():
    assert of_kind(with_one_long_task(1.0).commands, c.RecallTask) == []


def at_the_tail():
    """Two workers of which one holds two tasks; the other is about to finish its last."""
    s = Scheduler((group(0, num_workers=2),), SchedulerConfig(num_sources=9, rescale_interval_s=1e9))
    s.handle(e.NodeJoined(0, 2, (), 10**9))
    s.handle(e.WorkerReady(0), e.WorkerReady(1))
    items = tuple(e.SourceItem(i, f"p{i}", 1, f"<p{i}>") for i in range(9))
    s.handle(e.SourceListed(items))
    for now, task in ((1.0, 0), (2.0, 2), (3.0, 3)):
        s.handle(e.Ticked(now), e.TaskFinished(0, task, (), 1.0, ()))
    return s


def held(s):
    return {worker.id: [task.item_id for task in worker.assigned.values()] for worker in s.groups[0].workers.values()}


def test_a_drained_worker_gives_back_what_it_has_not_begun():
    s = at_the_tail()
    before = held(s)[1]
    assert len(before) == 2

    s.fleet.drain(s.fleet.find(1))
    recalled, drained = s.handle(e.Ticked(3.5))[:2]

    assert isinstance(recalled, c.RecallTask)
    assert drained == c.DrainWorker(1)
    assert held(s)[1] == before[:1]
    invariants.check(s)


def test_a_task_begun_at_the_moment_it_was_recalled_counts_once():
    s = at_the_tail()
    begun = list(s.fleet.find(1).assigned)[1]
    s.fleet.drain(s.fleet.find(1))
    s.handle(e.Ticked(3.5))
    totals = (s.groups[0].live, len(s.tasks))

    late = e.Output(0, "late", 1, "<late>")
    assert s.handle(e.TaskFinished(1, begun, (late,), 1.0, ())) == [c.Release("<late>")]
    assert (s.groups[0].live, len(s.tasks)) == totals


def test_the_next_attempt_of_a_recalled_task_names_its_files_differently():
    run = with_one_long_task(100.0)
    (recall,) = of_kind(run.commands, c.RecallTask)
    sent = [a for x in of_kind(run.commands, c.SendTask) for call in x.calls for a in call]
    item = next(a.item_id for a in sent if a.task in recall.tasks)

    assert [a.attempt for a in sent if a.item_id == item] == [0, 1]


def test_a_drained_worker_that_hangs_in_a_task_it_should_have_skipped_is_killed():
    s = Scheduler((group(0, num_workers=1, deadline_s=50.0),), SchedulerConfig(num_sources=9, rescale_interval_s=1e9))
    s.handle(e.NodeJoined(0, 1, (), 10**9))
    s.handle(e.WorkerReady(0))
    s.handle(e.SourceListed(tuple(e.SourceItem(i, f"p{i}", 1, f"<p{i}>") for i in range(9))))
    s.handle(e.Ticked(1.0), e.TaskFinished(0, 0, (), 1.0, ()))
    s.fleet.drain(s.fleet.find(0))
    s.handle(e.Ticked(2.0), e.TaskFinished(0, 1, (), 1.0, ()))

    assert of_kind(s.handle(e.Ticked(51.0)), c.KillWorker) == []
    assert [kill.worker for kill in of_kind(s.handle(e.Ticked(53.0)), c.KillWorker)] == [0]
