"""The scheduler, event by event: the commands of every step, whole."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.breaker import QuarantineLimit
from gristmill.engine.faults import Fault
from gristmill.engine.policies.retry import Trial
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.metrics.snapshot import StageCounts
from gristmill.testing.virtual_run import group

NODE = e.NodeJoined(0, 1, (), 10**9)
KILLED = "killed by SIGKILL"


def scheduler(*groups, num_sources=1, **config):
    return Scheduler(groups or (group(0), group(1)), SchedulerConfig(num_sources=num_sources, **config))


def tell(s, *events):
    """Hand over events and return the commands, with the invariants checked."""
    commands = s.handle(*events)
    invariants.check(s, commands)
    return commands


def listed(*names, num_bytes=10):
    return e.SourceListed(tuple(e.SourceItem(i, name, num_bytes, f"<{name}>") for i, name in enumerate(names)))


def output(name, index=0, num_bytes=10):
    return e.Output(index, name, num_bytes, f"<{name}>")


def assignment(task, name, **known):
    usual = {"care": c.Care.NORMAL, "attempt": 0, "condemned": (), "cause": "", "skip": 0}
    return c.Assignment(task, name, f"<{name}>", **{**usual, **known})


def begun(*names, groups=(), **config):
    """A scheduler whose workers are ready and whose partitions are listed; `s.sent` is what it said to the listing."""
    s = scheduler(*groups, num_sources=len(names), **config)
    tell(s, NODE)
    for worker in range(len(s.groups)):
        tell(s, e.WorkerReady(worker))
    return s, tell(s, listed(*names), e.SourceExhausted())


def sends(commands):
    return [command for command in commands if isinstance(command, c.SendTask)]


def test_a_node_gets_a_worker_for_every_group_and_the_source_is_asked():
    assert tell(scheduler(), NODE) == [c.StartWorker(0, 0, 0, ()), c.StartWorker(1, 1, 0, ()), c.PullSource(16)]


def test_time_after_a_result_of_the_same_step_is_not_counted_as_busy():
    s, _ = begun("a", "b", groups=(group(0),))
    tell(s, e.Ticked(1.0))
    busy_s = s.groups[0].book.busy_s

    tell(s, e.TaskFinished(0, 0, (), 0.1, ()), e.TaskFinished(0, 1, (), 0.1, ()), e.Ticked(11.0))

    assert s.groups[0].book.busy_s == busy_s


def test_a_partition_passes_through_all_groups_and_is_committed_then_published():
    s, commands = begun("a")
    assert commands == [c.SendTask(0, [[assignment(0, "a")]])]

    first = e.TaskFinished(0, 0, (output("a.0"),), 0.1, (StageCounts(read=1, documents_out=1),))
    assert tell(s, first) == [c.Release("<a>"), c.DrainWorker(0), c.SendTask(1, [[assignment(1, "a.0")]])]

    second = e.TaskFinished(1, 1, (output("a.0.0"),), 0.1, (StageCounts(written=1),))
    counts = (StageCounts(read=1, documents_out=1), StageCounts(written=1))
    commit, *rest = [command for command in tell(s, second) if not isinstance(command, c.Release)]
    assert (commit.root, commit.name, commit.outputs, commit.counts) == (0, "a", (output("a.0.0"),), counts)
    assert rest == [c.DrainWorker(1)]

    assert tell(s, e.Committed(0)) == [c.Publish(0)]
    assert tell(s, e.WorkerExited(0), e.WorkerExited(1)) == [c.Finish("finished")]


def test_a_partition_that_comes_to_nothing_is_committed_all_the_same():
    s, _ = begun("a")
    commands = tell(s, e.TaskFinished(0, 0, (), 0.1, (StageCounts(read=1, dropped={"short": 1}),)))

    assert [x.root for x in commands if isinstance(x, c.Commit)] == [0]


def test_a_root_is_committed_only_when_its_last_descendant_is_done():
    s, _ = begun("a")
    tell(s, e.TaskFinished(0, 0, (output("a.0"), output("a.1", 1)), 0.1, ()))
    early = tell(s, e.TaskFinished(1, 1, (), 0.1, ()))
    late = tell(s, e.TaskFinished(1, 2, (), 0.1, ()))

    assert [x.root for x in early if isinstance(x, c.Commit)] == []
    assert [x.root for x in late if isinstance(x, c.Commit)] == [0]


def test_outputs_are_committed_in_the_order_of_their_names():
    s, _ = begun("a", groups=(group(0),))
    commands = tell(s, e.TaskFinished(0, 0, (output("a.1"), output("a.0", 1)), 0.1, ()))

    assert [[o.item_id for o in x.outputs] for x in commands if isinstance(x, c.Commit)] == [["a.0", "a.1"]]


def test_a_task_that_raised_is_tried_again_with_care_under_a_new_number():
    s, _ = begun("a")
    commands = tell(s, e.TaskRaised(0, 0, "stage_0", "ValueError: no"))

    again = assignment(1, "a", care=c.Care.ISOLATE, attempt=1, cause="ValueError: no")
    assert commands == [c.SendTask(0, [[again]])]


def test_a_transient_error_waits_and_asks_to_be_woken():
    s, _ = begun("a")
    assert tell(s, e.Ticked(1.0), e.TaskRaised(0, 0, "stage_0", "busy", Fault.TRANSIENT)) == [
        c.Tell("stage_0: busy; trying again in 0.5 s")
    ]
    assert s.next_wakeup() == 1.5

    assert tell(s, e.Ticked(1.4)) == []
    assert tell(s, e.Ticked(1.5)) == [c.SendTask(0, [[assignment(1, "a", attempt=1)]])]


def test_of_a_dead_workers_tasks_only_the_running_one_is_blamed():
    s, commands = begun("a", "b", groups=(group(0, batch_size=2, num_workers=1),))
    assert [a.item_id for x in sends(commands) for call in x.calls for a in call] == ["a", "b"]

    tell(s, e.WorkerLost(0, "killed"))
    assert {t.item_id: (t.trial.attempts, t.trial.deaths) for t in s.groups[0].queue} == {"a": (1, 1), "b": (0, 0)}


def test_a_lost_worker_is_replaced_and_its_task_goes_to_the_next():
    s, _ = begun("a", groups=(group(0),))
    assert tell(s, e.WorkerLost(0, "killed")) == [c.StartWorker(1, 0, 0, ())]

    assert tell(s, e.WorkerReady(1)) == [c.SendTask(1, [[assignment(1, "a", attempt=1, cause="killed")]])]


def test_a_lost_node_blames_nobody_and_may_go_on_writing_under_the_old_name():
    s, _ = begun("a", groups=(group(0),))
    tell(s, e.NodeLost(0))

    assert [(t.item_id, t.trial) for t in s.groups[0].queue] == [("a", Trial(attempts=1))]
    assert s.memory.limit == 0


def test_a_stream_that_is_done_again_skips_what_was_taken_over():
    s, _ = begun("a")
    tell(s, e.TaskEmitted(0, 0, output("a.0")))
    tell(s, e.WorkerLost(0, "killed"))
    (send,) = [x for x in tell(s, e.WorkerReady(2)) if isinstance(x, c.SendTask)]
    task = send.calls[0][0]
    assert task.skip == 1

    again = e.TaskFinished(2, task.task, (output("a.0"), output("a.1", 1)), 0.1, ())
    assert c.Release("<a.0>") in tell(s, again)
    assert sorted(t.item_id for t in s.tasks.values()) == ["a.0", "a.1"]


def test_a_streaming_worker_is_granted_the_next_output_once_its_successor_keeps_up():
    s, _ = begun("a")
    granted = [tell(s, e.TaskEmitted(0, 0, output(f"a.{n}", n))) for n in range(4)]

    assert [c.GrantEmit(0, 0) in commands for commands in granted] == [True, True, False, False]
    assert c.GrantEmit(0, 0) in tell(s, e.TaskFinished(1, 1, (), 0.1, ()))


def test_a_streaming_worker_is_never_held_back_by_a_group_without_workers():
    s, _ = begun("a", barrier=True)

    assert not s.groups[1].workers
    assert all(c.GrantEmit(0, 0) in tell(s, e.TaskEmitted(0, 0, output(f"a.{n}", n))) for n in range(9))


def test_the_next_stage_goes_over_the_limit_when_everybody_waits_for_it():
    s = scheduler()
    tell(s, e.NodeJoined(0, 1, (), 100))
    tell(s, e.WorkerReady(0), listed("a", num_bytes=50), e.SourceExhausted())
    for n in range(3):
        tell(s, e.TaskEmitted(0, 0, output(f"a.{n}", n, num_bytes=60)))

    assert [x.worker for x in sends(tell(s, e.WorkerReady(1)))] == [1]


LATE = [
    e.WorkerReady(0),
    e.WorkerSetupFailed(0, "late"),
    e.WorkerSetupFailed(99, "unknown"),
    e.WorkerLost(99, "unknown"),
    e.WorkerExited(99),
    e.TaskRaised(0, 99, "stage_0", "unknown task"),
    e.TaskRaised(99, 0, "stage_0", "unknown worker"),
    e.TaskRaised(1, 0, "stage_0", "another's task"),
    e.Committed(0),
    e.MemorySampled(99, 1),
    e.NodeLost(99),
    NODE,
]


@pytest.mark.parametrize("event", LATE, ids=repr)
def test_news_that_is_late_repeated_or_about_nobody_changes_nothing(event):
    s, _ = begun("a")

    assert tell(s, event) == []
    assert list(s.tasks) == [0]


@pytest.mark.parametrize(
    "event",
    [
        e.TaskEmitted(99, 0, output("late")),
        e.TaskFinished(99, 0, (output("late"),), 0.1, ()),
        e.TaskFinished(0, 99, (output("late"),), 0.1, ()),
        e.SourceListed((e.SourceItem(0, "a", 1, "<late>"),)),
    ],
    ids=repr,
)
def test_what_comes_with_late_news_is_released(event):
    s, _ = begun("a")

    assert tell(s, event) == [c.Release("<late>")]


def test_news_of_an_earlier_attempt_on_the_same_worker_is_late():
    s, _ = begun("a")
    raised = e.TaskRaised(0, 0, "stage_0", "no")
    tell(s, raised)

    assert tell(s, raised) == []


def test_a_committed_root_is_published_once():
    s, _ = begun("a")
    tell(s, e.TaskFinished(0, 0, (), 0.1, ()))

    assert c.Publish(0) in tell(s, e.Committed(0))
    assert c.Publish(0) not in tell(s, e.Committed(0))


def test_a_setup_that_fails_twice_ends_the_run():
    s = scheduler(group(0))
    tell(s, NODE)
    assert tell(s, e.WorkerSetupFailed(0, "no model")) == [c.StartWorker(1, 0, 0, ())]

    error = "stage_0: set-up failed 2 times: no model"
    assert tell(s, e.WorkerSetupFailed(1, "no model")) == [c.Finish("failed", error)]


@pytest.mark.parametrize(("cause", "borne"), [("ended with exit code 1", 2), (KILLED, 6)])
def test_workers_that_end_while_they_set_up_are_started_again_a_few_times(cause, borne):
    s = scheduler(group(0))
    tell(s, NODE)
    for worker in range(borne):
        assert tell(s, e.WorkerLost(worker, cause)) == [c.StartWorker(worker + 1, 0, 0, ())]

    error = f"stage_0: its workers end during set-up: {cause}"
    assert tell(s, e.WorkerLost(borne, cause)) == [c.Finish("failed", error)]


def test_a_task_that_is_taken_apart_goes_on_at_the_document_its_worker_was_killed_at():
    s, _ = begun("a", groups=(group(0),))
    place = e.Crumb(0, 4, 5)
    for worker in range(3):
        tell(s, e.WorkerLost(worker, KILLED, place))
        tell(s, e.WorkerReady(worker + 1))
    (sent,) = sends(tell(s, e.Ticked(1.0)))

    assert sent.calls == [
        [assignment(3, "a", care=c.Care.STEP, attempt=3, cause=f"{KILLED} in stage stage_0", step_from=place)]
    ]


def test_cancelling_kills_the_workers_and_says_so_once():
    s, _ = begun("a")
    killed = [c.KillWorker(0, "Ctrl-C"), c.KillWorker(1, "Ctrl-C")]

    assert tell(s, e.Cancelled("Ctrl-C")) == [*killed, c.Finish("stopped", "Ctrl-C")]
    assert tell(s, e.Cancelled("Ctrl-C")) == []


def test_after_the_end_results_are_released_and_nothing_else_happens():
    s, _ = begun("a")
    tell(s, e.Cancelled())

    assert tell(s, e.TaskFinished(0, 0, (output("a.0"),), 0.1, ())) == [c.Release("<a.0>")]


def test_at_the_quarantine_limit_nothing_new_begins_and_what_has_begun_is_committed():
    s, _ = begun("a", "b", groups=(group(0, num_workers=1),), limit=QuarantineLimit(0))
    commands = tell(s, e.TaskFinished(0, 0, (), 0.1, (StageCounts(read=1, quarantined=1),)))
    assert next(x for x in commands if isinstance(x, c.Commit)).root == 0
    assert c.Release("<b>") in commands

    tell(s, e.Committed(0))
    error = "more than 0 documents failed"
    assert tell(s, e.WorkerExited(0)) == [c.Finish("quarantine_limit", error)]


def test_a_stream_that_has_begun_is_finished_even_at_the_quarantine_limit():
    s, _ = begun("a", limit=QuarantineLimit(0))
    tell(s, e.TaskEmitted(0, 0, output("a.0")), e.WorkerLost(0, "killed"))
    tell(s, e.TaskFinished(1, 1, (), 0.1, (StageCounts(quarantined=1),)))

    assert [(t.item_id, t.received) for t in s.tasks.values()] == [("a", 1)]
    assert list(s.roots) == [0]


def test_a_result_of_the_same_moment_is_taken_in_before_a_deadline_is_judged():
    s, _ = begun("a", groups=(group(0, deadline_s=5.0),))
    commands = tell(s, e.Ticked(9.0), e.TaskFinished(0, 0, (), 9.0, ()))

    assert not [x for x in commands if isinstance(x, c.KillWorker)]


def test_a_worker_past_the_deadline_is_killed_once():
    s, _ = begun("a", groups=(group(0, deadline_s=5.0),))

    assert tell(s, e.Ticked(5.1)) == [c.KillWorker(0, "no result within the deadline of 5 s")]
    assert tell(s, e.Ticked(5.2)) == []


def test_a_task_that_takes_suspiciously_long_is_mentioned():
    s, _ = begun("a", groups=(group(0),))

    assert tell(s, e.Ticked(61.0)) == [c.Warn(0, 0, "a", 61.0)]
    assert tell(s, e.Ticked(62.0)) == []


def test_an_incomplete_batch_asks_to_be_woken_but_not_again_while_workers_are_busy():
    s = scheduler(group(0, batch_size=2), num_sources=9)
    tell(s, NODE)
    tell(s, e.WorkerReady(0), listed("a", "b", "c"))
    assert s.next_wakeup() == pytest.approx(0.05)

    tell(s, e.Ticked(0.2))
    assert s.next_wakeup() is None


def test_an_idle_worker_takes_a_task_that_failed_on_it_when_the_others_are_full():
    s = scheduler(group(0, num_workers=2), num_sources=2)
    tell(s, NODE)
    tell(s, e.WorkerReady(0), e.WorkerReady(1), listed("a", "b"), e.SourceExhausted())
    (send,) = sends(tell(s, e.TaskRaised(0, 0, "stage_0", "no")))

    assert (send.worker, send.calls[0][0].item_id) == (0, "a")


def test_with_a_barrier_a_stage_begins_when_the_one_before_has_ended():
    s = scheduler(num_sources=2, barrier=True)
    assert tell(s, NODE) == [c.StartWorker(0, 0, 0, ()), c.PullSource(16)]
    tell(s, e.WorkerReady(0), listed("a", "b"), e.SourceExhausted())

    assert c.StartWorker(1, 1, 0, ()) not in tell(s, e.TaskFinished(0, 0, (output("a.0"),), 0.1, ()))
    assert c.StartWorker(1, 1, 0, ()) in tell(s, e.TaskFinished(0, 1, (output("b.0"),), 0.1, ()))


def test_with_a_barrier_a_stage_goes_on_though_what_it_makes_fills_the_memory():
    s = scheduler(num_sources=2, barrier=True)
    tell(s, e.NodeJoined(0, 1, (), 15))
    tell(s, e.WorkerReady(0), listed("a", "b"), e.SourceExhausted())

    assert [x.calls[0][0].item_id for x in sends(tell(s, e.TaskFinished(0, 0, (output("a.0"),), 0.1, ())))] == ["b"]


def test_a_group_pauses_while_as_many_tasks_as_allowed_wait_for_the_next():
    s = scheduler(num_sources=9, max_queued=2)
    tell(s, NODE)
    tell(s, e.WorkerReady(0), listed("a", "b", "c", "d", "e"))  # nobody of the second group is ready
    outputs = iter("abcde")
    sent = []
    while s.groups[0].workers[0].assigned:
        task = next(iter(s.groups[0].workers[0].assigned))
        name = next(outputs)
        sent.append(name)
        tell(s, e.TaskFinished(0, task, (output(f"{name}.0"),), 10.0, ()))

    assert len(s.groups[1].queue) == len(sent) >= 2
    assert s.dispatcher.must_wait(0)
    assert len(s.groups[0].queue) == 5 - len(sent) > 0


@pytest.mark.parametrize(("num_bytes", "goes_on"), [(50, True), (51, False)])
def test_a_streaming_worker_waits_while_more_than_half_of_the_memory_is_held(num_bytes, goes_on):
    s = scheduler()
    tell(s, e.NodeJoined(0, 1, (), 100))
    tell(s, e.WorkerReady(0), listed("a"), e.SourceExhausted())

    commands = tell(s, e.TaskEmitted(0, 0, output("a.0", num_bytes=num_bytes)))
    assert (c.GrantEmit(0, 0) in commands) is goes_on


def test_the_scheduler_asks_to_be_woken_for_what_is_due_first():
    s = scheduler(group(0), group(1, batch_size=2), num_sources=9)
    tell(s, NODE)
    tell(s, e.WorkerReady(0), e.WorkerReady(1), listed("a", "b"))
    tell(s, e.TaskFinished(0, 0, (output("a.0"),), 0.1, ()))
    tell(s, e.TaskRaised(0, 1, "stage_0", "away", Fault.TRANSIENT))

    assert s.next_wakeup() == pytest.approx(0.05)
