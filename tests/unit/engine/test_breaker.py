"""When the scheduler stops a run, what it holds back until then, and what it leaves out."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.breaker import DEATHS, DEATHS_IN_A_ROW, Failed, QuarantineLimit
from gristmill.engine.commands import Care
from gristmill.engine.faults import FAILED_DOCUMENTS, Fault
from gristmill.engine.policies.retry import MAX_MACHINE, PROOF_OF_DOCUMENT
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks import StagedFile
from gristmill.testing.virtual_run import group

GOOD = StageCounts(documents_in=1, documents_out=1, read=1)
BAD = StageCounts(documents_in=1, read=1, quarantined=1)
UNREADABLE = StageCounts(lost_parts=1, lost_bytes=100, lost_of_plan=100)


def begun(names="abc", workers=1, **config):
    """One group whose workers have the first of some partitions."""
    s = Scheduler((group(0, num_workers=workers),), SchedulerConfig(num_sources=len(names), **config))
    tell(s, e.NodeJoined(0, workers, (), 10**9))
    tell(s, *map(e.WorkerReady, range(workers)))
    items = tuple(e.SourceItem(i, name, 10, f"<{name}>") for i, name in enumerate(names))
    tell(s, e.SourceListed(items), e.SourceExhausted())
    return s


def tell(s, *events):
    commands = s.handle(*events)
    invariants.check(s, commands)
    return commands


def running(s):
    (worker,) = s.groups[0].workers.values()
    return worker.id, next(iter(worker.assigned))


def finish(s, counts, *files):
    return tell(s, e.TaskFinished(*running(s), (), 0.1, (counts,), side_files=files))


def raise_(s, fault, error="no"):
    return tell(s, e.TaskRaised(*running(s), "stage_0", error, fault))


def of(kind, commands):
    return [command for command in commands if isinstance(command, kind)]


def commit_all(s, commands):
    """Say that everything is on disk; return what was committed and how it ended."""
    committed, ended = [], []
    while commands:
        committed += [command.root for command in of(c.Commit, commands)]
        ended += of(c.Finish, commands)
        events = [e.Committed(command.root) for command in of(c.Commit, commands)]
        events += [e.WorkerExited(command.worker) for command in of(c.DrainWorker, commands)]
        commands = tell(s, *events) if events else []
    return committed, ended


def test_partitions_whose_documents_failed_wait_until_one_has_passed():
    s = begun()
    assert of(c.Commit, finish(s, BAD)) == []
    assert of(c.Commit, finish(s, BAD)) == []

    assert sorted(command.root for command in of(c.Commit, finish(s, GOOD))) == [0, 1, 2]


def test_a_stage_that_let_nothing_pass_has_nothing_committed_at_the_end():
    s = begun()
    file = StagedFile("tmp", "final", 1, 1, "x")
    finish(s, BAD, file)
    finish(s, BAD)
    committed, ended = commit_all(s, finish(s, BAD))

    assert committed == []
    assert ended == [c.Finish("broken", "stage_0: no document has passed it; 3 documents failed", (file,))]


def test_what_passed_in_an_earlier_session_counts():
    s = begun(passed_before=(True,))

    assert [command.root for command in of(c.Commit, finish(s, BAD))] == [0]


def test_a_stage_is_broken_after_a_hundred_documents():
    s = begun()
    most = StageCounts(documents_in=99, read=99, quarantined=FAILED_DOCUMENTS - 1)
    assert of(c.Finish, finish(s, most)) == []

    (ended,) = of(c.Finish, finish(s, BAD))
    assert ended.outcome == "broken"


def test_what_failed_in_an_earlier_session_counts():
    s = begun(limit=QuarantineLimit(0.1), failed_before=Failed(100, 5000), passed_before=(True,))
    assert (
        of(c.PullSource, finish(s, StageCounts(documents_in=1000, read=1000, quarantined=400, documents_out=600))) == []
    )

    assert s.stop_reason is None
    finish(s, StageCounts(documents_in=1000, read=1000, quarantined=400, documents_out=600))
    assert s.stop_reason is not None


def test_dropping_is_passing():
    s = begun()

    assert of(c.Commit, finish(s, StageCounts(documents_in=2, read=2, quarantined=1, dropped={"short": 1}))) != []


def test_files_that_cannot_be_read_break_the_run_if_none_can():
    s = begun()
    finish(s, UNREADABLE)
    finish(s, UNREADABLE)
    committed, (ended,) = commit_all(s, finish(s, UNREADABLE))

    assert (committed, ended.outcome) == ([], "broken")
    assert ended.error == "stage_0: no document has passed it; 3 parts of files failed"


def test_workers_that_die_on_everything_are_not_started_for_ever():
    s = begun()
    for number in range(DEATHS):
        worker, _ = running(s)
        commands = tell(s, e.WorkerLost(worker, "killed by SIGSEGV", e.Crumb(0, 0, 2)))
        if number < DEATHS - 1:
            assert of(c.Finish, commands) == []
            tell(s, e.WorkerReady(of(c.StartWorker, commands)[0].worker))

    (ended,) = of(c.Finish, commands)
    assert ended.outcome == "broken"
    assert ended.error.startswith("stage_0: its workers died 10 times and no document has passed it; the last at a")
    assert "10 × stage_0: killed by SIGSEGV" in ended.error


def kill(s, worker, task):
    """Kill a worker at the first document that is left, and let another take its place when the pause is over."""
    trial = s.tasks[task].trial
    row = len(trial.condemned)
    crumb = e.Crumb(0, row, row + 1) if trial.care is Care.STEP else e.Crumb(0, 0, 2)
    commands = tell(s, e.WorkerLost(worker, "killed by SIGKILL", crumb))
    if not s.finished:
        tell(s, *(e.WorkerReady(started.worker) for started in of(c.StartWorker, commands)))
        tell(s, e.Ticked(s.now + 60.0))


def test_kills_count_against_a_stage_once_a_document_was_left_out_for_them():
    s = begun("a")
    deaths = 0
    while not s.finished:
        kill(s, *running(s))
        deaths += 1

    assert deaths == 2 + PROOF_OF_DOCUMENT + DEATHS


def test_a_killer_in_every_partition_breaks_no_stage_however_many_workers_meet_one():
    s = begun("abcdefghijkl", workers=12)
    for _ in range(2 + PROOF_OF_DOCUMENT):
        for worker in list(s.groups[0].workers.values()):
            kill(s, worker.id, next(iter(worker.assigned)))

    assert s.groups[0].deaths > DEATHS_IN_A_ROW
    assert not s.finished


def test_more_deaths_are_borne_once_a_task_was_done():
    s = begun()
    finish(s, GOOD)
    for _ in range(DEATHS_IN_A_ROW - 1):
        worker, _ = running(s)
        commands = tell(s, e.WorkerLost(worker, "killed by SIGSEGV", e.Crumb(0, 0, 2)))
        tell(s, e.WorkerReady(of(c.StartWorker, commands)[0].worker))

    assert not s.finished
    (ended,) = of(c.Finish, tell(s, e.WorkerLost(running(s)[0], "killed by SIGSEGV", e.Crumb(0, 0, 2))))
    assert "100 times since a task was last done" in ended.error


def test_a_worker_that_comes_past_a_document_while_stepping_lets_it_pass():
    s = begun()
    for row in (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6):  # two deaths each, and two before the stepping began
        worker, _ = running(s)
        # Document 0 is not fatal: the worker dies at the next one.
        commands = tell(s, e.WorkerLost(worker, "killed by SIGSEGV", e.Crumb(0, row + 1, row + 2)))
        tell(s, e.WorkerReady(of(c.StartWorker, commands)[0].worker))

    assert not s.finished


def test_a_machines_error_is_waited_out_and_then_stops_the_run():
    s = begun("a")
    for number in range(MAX_MACHINE):
        (told,) = of(c.Tell, raise_(s, Fault.MACHINE, "out: full. Make room"))
        assert told.text == f"stage_0: out: full; trying again in {0.5 * 2**number:g} s"
        tell(s, e.Ticked(s.now + 60.0))

    assert of(c.Finish, raise_(s, Fault.MACHINE, "out: full")) == [c.Finish("machine", "stage_0: out: full")]


def test_what_does_not_pass_is_not_waited_for():
    assert of(c.Finish, raise_(begun(), Fault.MACHINE_FINAL, "gone")) == [c.Finish("machine", "stage_0: gone")]


def test_a_changed_input_is_left_out_and_the_rest_is_done():
    s = begun()
    raise_(s, Fault.INPUT, "a.jsonl: it shrank")
    first = commit_all(s, finish(s, GOOD))
    second = commit_all(s, finish(s, GOOD))

    assert (first, second) == (([1], []), ([2], [c.Finish("inputs_changed", "a.jsonl: it shrank")]))


def test_what_a_changed_input_streamed_before_is_let_go():
    s = Scheduler((group(0, num_workers=1), group(1, num_workers=1)), SchedulerConfig(num_sources=1))
    tell(s, e.NodeJoined(0, 2, (), 10**9))
    tell(s, e.WorkerReady(0), e.WorkerReady(1))
    tell(s, e.SourceListed((e.SourceItem(0, "a", 10, "<a>"),)), e.SourceExhausted())
    tell(s, e.TaskEmitted(0, 0, e.Output(0, "a.0", 10, "<a.0>")))
    tell(s, e.TaskRaised(0, 0, "stage_0", "a: it shrank", Fault.INPUT))
    committed, ended = commit_all(s, tell(s, e.TaskFinished(1, 1, (), 0.1, (GOOD,))))

    assert committed == []
    assert [end.outcome for end in ended] == ["inputs_changed"]
    assert s.totals == [StageCounts(), StageCounts()]


def test_a_batch_that_is_given_up_stops_the_run_unless_others_have_passed():
    assert [end.outcome for end in of(c.Finish, raise_(begun(), Fault.PROGRAM))] == ["broken"]

    s = begun()
    finish(s, GOOD)
    raise_(s, Fault.DOCUMENT)
    assert [task.trial.care for task in s.tasks.values() if task.trial.attempts] == [Care.PATIENT]


def test_a_batch_with_more_failures_than_allowed_stops_the_run_uncommitted():
    s = begun(limit=QuarantineLimit(3))
    committed, ended = commit_all(s, raise_(s, Fault.LIMIT, "14 documents of one batch failed"))

    assert (committed, ended) == ([], [c.Finish("quarantine_limit", "14 documents of one batch failed")])


def test_a_stream_of_documents_that_fails_half_way_begins_again_with_care():
    s = Scheduler((group(0, num_workers=1), group(1, num_workers=1)), SchedulerConfig(num_sources=1))
    tell(s, e.NodeJoined(0, 2, (), 10**9))
    tell(s, e.WorkerReady(0), e.WorkerReady(1))
    tell(s, e.SourceListed((e.SourceItem(0, "a", 10, "<a>"),)), e.SourceExhausted())
    tell(s, e.TaskEmitted(0, 0, e.Output(0, "a.0", 10, "<a.0>")))
    commands = tell(s, e.TaskRaised(0, 0, "stage_0", "no", Fault.DOCUMENT, divisible=True))
    commands += tell(s, e.TaskFinished(1, 1, (), 0.1, (GOOD,)))
    (again,) = of(c.ListAgain, commands)
    commands = tell(s, e.ListedAgain(e.SourceItem(0, "a", 10, "<a again>"), again.attempt))

    ((assignment,),) = of(c.SendTask, commands)[0].calls
    assert (assignment.item_id, assignment.care, assignment.skip) == ("a", Care.ISOLATE, 0)


@pytest.mark.parametrize("fault", [Fault.MACHINE, Fault.INPUT])
def test_the_same_news_twice_changes_nothing(fault):
    s = begun()
    raised = e.TaskRaised(*running(s), "stage_0", "no", fault)
    tell(s, raised)

    assert of(c.Finish, tell(s, raised)) == []
