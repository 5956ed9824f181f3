"""A schedule shows what every worker was at: nothing overlaps, nothing is lost, nothing is longer than it was."""

import itertools

import pytest
from tests.property.test_scheduler_is_pure import steps, troubled_run

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.event_log import GroupShape
from gristmill.engine.replay import Step
from gristmill.engine.schedule import schedule
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.spans import Lane, Level, Mark, Span, merge_spans
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.resources import Resources


def shape(index=0, *names, lanes=1):
    return GroupShape(index, names or ("a",), 0, Resources(), 1, None, None, lanes=lanes)


def assignment(task, item_id, *, attempt=0, care=c.Care.NORMAL, cause=""):
    return c.Assignment(task, item_id, 0, care, attempt, (), cause, 0)


def done(worker, task, seconds, outputs=()):
    counts = StageCounts(documents_in=3, documents_out=2, bytes_in=9, process_s=seconds)
    return e.TaskFinished(worker, task, outputs, seconds, (counts,))


def listed(*names):
    return e.SourceListed(tuple(e.SourceItem(n, name, 5, n) for n, name in enumerate(names)))


def shown(*moments, groups=None):
    """The schedule of (seconds, events, commands)."""
    walk = (Step(1, events, commands, 100.0 + now) for now, events, commands in moments)
    return list(schedule(walk, groups or (shape(),)))


def spans(found, *kinds):
    return [s for s in found if isinstance(s, Span) and (not kinds or s.kind in kinds)]


def marks(found):
    return [(m.kind, m.at_s, m.text) for m in found if isinstance(m, Mark)]


START = (0.0, (listed("p", "q", "r"),), [c.StartWorker(0, 0, 0, ())])
READY = (1.0, (e.WorkerReady(0, 0.5),), [c.SendTask(0, [[assignment(0, "p")], [assignment(1, "q")]])])


def test_a_task_ends_when_it_is_heard_of_and_lasts_as_long_as_it_took():
    found = shown(START, READY, (3.0, (done(0, 0, 1.5),), []), (9.0, (done(0, 1, 2.0),), []))

    assert [(s.kind, s.item_id, s.start_s, s.end_s, s.waited_s) for s in spans(found)] == [
        ("set-up", "", 0.0, 1.0, 0.0),
        ("task", "p", 1.5, 3.0, 1.0),
        ("task", "q", 7.0, 9.0, 1.0),
    ]
    first = spans(found, "task")[0]
    assert (first.documents_in, first.documents_out, first.num_bytes, first.process_s) == (3, 2, 9, (1.5,))


def test_what_is_heard_of_together_was_done_one_after_the_other():
    found = shown(START, READY, (9.0, (done(0, 0, 4.0), done(0, 1, 3.0)), []))

    assert [(s.item_id, s.start_s, s.end_s) for s in spans(found, "task")] == [("p", 2.0, 6.0), ("q", 6.0, 9.0)]


def test_an_attempt_that_raised_lasts_from_its_beginning_and_the_next_is_a_retry():
    again = c.SendTask(0, [[assignment(5, "p", attempt=1, care=c.Care.ISOLATE, cause="no")]])
    found = shown(
        START,
        READY,
        (3.0, (e.TaskRaised(0, 0, "a", "ValueError: no"),), [again]),
        (4.0, (done(0, 1, 1.0), e.TaskStepped(0, 5)), []),
        (6.0, (done(0, 5, 2.0),), [c.Commit(0, "p", (), (), (), (), ()), c.Finish("finished")]),
    )

    assert [(s.kind, s.start_s, s.end_s, s.note) for s in spans(found)[1:]] == [
        ("raised", 1.0, 3.0, "a: ValueError: no"),
        ("task", 3.0, 4.0, ""),
        ("task", 4.0, 6.0, ""),
    ]
    assert spans(found)[-1].care == "isolate"
    assert marks(found) == [
        ("retry", 3.0, "p: attempt 2, isolate: no"),
        ("step", 4.0, "p"),
        ("commit", 6.0, "p"),
        ("end", 6.0, "finished"),
    ]


def test_with_a_worker_only_what_it_was_running_is_lost():
    found = shown(START, READY, (4.0, (e.MemorySampled(0, 77), e.WorkerLost(0, "killed")), []))

    assert [(s.kind, s.item_id, s.start_s, s.end_s, s.note) for s in spans(found, "lost")] == [
        ("lost", "p", 1.0, 4.0, "killed")
    ]
    assert marks(found) == [("loss", 4.0, "killed")]
    memory = [(level.at_s, level.value) for level in found if isinstance(level, Level) and level.kind == "memory"]
    assert memory == [(4.0, 77), (4.0, 0)]
    assert [level.value for level in found if isinstance(level, Level) and level.kind == "queue"] == [3, 1, 3]


def test_the_slower_of_two_runs_of_a_task_is_wasted_and_hands_nothing_on():
    output = (e.Output(0, "p.0", 1, 9),)
    moments = (
        (0.0, (listed("p"),), [c.StartWorker(0, 0, 0, ()), c.StartWorker(1, 0, 0, ())]),
        (1.0, (e.WorkerReady(0), e.WorkerReady(1)), [c.SendTask(0, [[assignment(0, "p")]])]),
        (5.0, (), [c.SendTask(1, [[assignment(1, "p")]])]),
        (6.0, (done(1, 1, 1.0, output),), []),
        (7.0, (done(0, 0, 6.0, output),), []),
    )
    found = shown(*moments, groups=(shape(0), shape(1)))

    assert [(s.kind, s.worker) for s in spans(found, "task", "wasted")] == [("wasted", 0), ("task", 1)]
    assert [level.value for level in found if isinstance(level, Level) and level.group == 1] == [1]


def test_a_worker_that_was_told_to_end_is_at_that_until_it_has():
    found = shown(
        START, READY, (3.0, (done(0, 0, 2.0),), [c.DrainWorker(0)]), (4.0, (done(0, 1, 1.0),), []),
        (5.0, (e.WorkerExited(0),), []),
    )  # fmt: skip

    assert [(s.kind, s.start_s, s.end_s) for s in spans(found)[-1:]] == [("ending", 4.0, 5.0)]
    assert marks(found) == []


def test_calls_side_by_side_have_lanes_of_their_own():
    send = c.SendTask(0, [[assignment(n, name)] for n, name in enumerate("pqr")])
    found = shown(
        START,
        (1.0, (e.WorkerReady(0),), [send]),
        (4.0, (done(0, 0, 3.0),), []),
        (5.0, (done(0, 1, 4.0),), []),
        (8.0, (done(0, 2, 3.5),), []),
        groups=(shape(lanes=2),),
    )

    assert [(s.item_id, s.lane, s.start_s) for s in spans(found, "task")] == [
        ("p", 0, 1.0),
        ("r", 0, 4.5),
        ("q", 1, 1.0),
    ]


def test_a_recalled_task_waits_again():
    found = shown(START, READY, (2.0, (), [c.RecallTask(0, (1,))]), (3.0, (done(0, 0, 2.0),), []))

    assert marks(found) == [("recall", 2.0, "q")]
    assert [level.value for level in found if isinstance(level, Level)] == [3, 1, 2]


@pytest.fixture(scope="module")
def troubled():
    """The schedule of a run in which workers and a node are lost, and the run."""
    run = troubled_run()
    again = Scheduler(run.groups, run.config)
    walk = []
    for tick, others in steps(run.events):
        walk.append(Step(1, (tick, *others), again.handle(tick, *others), again.now))
    return run, list(schedule(walk, [shape(g.index, *g.names) for g in run.groups]))


def test_no_worker_is_at_two_things_however_much_goes_wrong(troubled):
    _, found = troubled
    rows = itertools.groupby(sorted(spans(found), key=lambda s: (s.worker, s.lane, s.start_s)), lambda s: s.worker)

    for _, row in rows:
        for first, second in itertools.pairwise(row):
            assert first.start_s <= first.end_s <= second.start_s


def test_every_task_of_the_books_has_one_span_and_every_partition_a_commit(troubled):
    run, found = troubled
    tasks = [(s.group, s.item_id) for s in spans(found, "task")]
    again = {text.partition(":")[0] for kind, _, text in marks(found) if kind == "again"}
    repeated = {item_id for group, item_id in tasks if tasks.count((group, item_id)) > 1}

    assert {item_id.partition(".")[0] for item_id in repeated} <= again
    done = sum(record.book.tasks for record in run.scheduler.groups)
    assert 0 <= len(tasks) - done <= len(again)  # what ended after its partition had to start over is in no book
    assert sum(mark[0] == "commit" for mark in marks(found)) == 30
    assert {span.kind for span in spans(found)} >= {"set-up", "task", "raised", "lost"}


def test_nothing_waits_at_the_end(troubled):
    _, found = troubled
    last = {level.group: level.value for level in found if isinstance(level, Level) and level.kind == "queue"}

    assert last == {0: 0, 1: 0, 2: 0}


def test_a_span_whose_place_is_taken_is_cut_rather_than_laid_over_another():
    lane = Lane(5.0)

    assert [(s.start_s, s.end_s) for s in (*lane.add(Span("task", 0, 0, 3.0, 6.0)), *lane.settle_all())] == [(5.0, 6.0)]


def test_fewer_spans_are_the_same_time_in_longer_pieces():
    row = [Span("task", 0, 0, n, n + (0.9 if n % 10 else 0.5), documents_in=1, process_s=(0.5,)) for n in range(100)]
    other = [Span("set-up", 1, 0, 0.0, 1.0), Span("task", 1, 0, 1.0, 2.0)]
    merged = merge_spans([*row, *other], 12)

    assert len(merged) == 12
    assert other == [s for s in merged if s.worker == 1]
    assert sum(s.documents_in for s in merged) == 100
    assert sum(sum(s.process_s) for s in merged if s.worker == 0) == 50
    assert (merged[0].start_s, merged[-3].end_s) == (0, 99.9)
    assert merge_spans(row, 1000) == row


def test_an_attempt_that_raised_is_cut_where_the_next_task_began():
    found = shown(START, READY, (3.0, (e.TaskRaised(0, 0, "a", "no"),), []), (3.5, (done(0, 1, 1.0),), []))

    assert [(s.kind, s.start_s, s.end_s) for s in spans(found)[1:]] == [("raised", 1.0, 2.5), ("task", 2.5, 3.5)]
