"""A group of stages in a worker accounts for every document, whatever its stages return."""

import gc
import json
import weakref
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.faults import Fault
from gristmill.metrics.snapshot import balance
from gristmill.pipeline.compile import compile_chain
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import STAGING_DIR, Observation, Quarantined
from gristmill.stages.text.filters import Filter
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job, JobFailure, RunSettings


def batch(*values):
    return DocumentBatch("numbers", pa.table({"n": pa.array(values, pa.int64())}))


class _Call(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage made of a function, so that each test shows what its stage does."""

    def __init__(self, function, *, name="call"):
        self.function = function
        self.name = name

    def process(self, task):
        return self.function(task)


class _CallBatch(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "call_batch"
    batch_size = 8

    def __init__(self, function):
        self.function = function
        self.calls = []

    def process_batch(self, tasks):
        self.calls.append(len(tasks))
        return self.function(tasks)


def runner(*stages, **options):
    plan = compile_chain("test", stages, [batch(0)])
    (group,) = plan.groups
    return GroupRunner(group, last=True, **options)


def run(stages, *tasks, care=Care.NORMAL, emitted=None, **job):
    """Run each task as a job of one call."""
    jobs = [Job(f"t{i}", task, care, **job) for i, task in enumerate(tasks)]
    taken = [] if emitted is None else emitted
    return runner(*stages).run(jobs, lambda number, item_id, task: taken.append((number, item_id, numbers(task))))


def numbers(task):
    return task.to_pyarrow()["n"].to_pylist()


def outputs(result):
    return [(item_id, numbers(task)) for item_id, task in result.outputs]


def books(result, stage=0):
    counts = result.counts[stage]
    return {
        "in": counts.documents_in,
        "out": counts.documents_out,
        "created": counts.created,
        "dropped": counts.dropped,
        "quarantined": counts.quarantined,
    }


def drop_odd(task):
    return task.filter(pa.array([n % 2 == 0 for n in numbers(task)]))


def drop_odd_in_place(task):
    task.data = drop_odd(task).to_pyarrow()
    return task


@pytest.mark.parametrize("stage", [drop_odd, drop_odd_in_place])
def test_rows_a_stage_leaves_out_are_dropped_with_the_stage_as_the_reason(stage):
    (result,) = run([_Call(stage)], batch(1, 2, 3, 4))

    assert outputs(result) == [("t0", [2, 4])]
    assert books(result) == {"in": 4, "out": 2, "created": 0, "dropped": {"call": 2}, "quarantined": 0}
    assert balance(list(result.counts)) == 0


def test_a_filter_gives_its_own_reason():
    def is_even(n):
        return n % 2 == 0

    (result,) = run([Filter(is_even, "n")], batch(1, 2, 3))

    assert books(result)["dropped"] == {"is_even": 2}


class _DropsOneLeavesOneOut(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "some"

    def process(self, task):
        self.context.drop(task, [n == 1 for n in numbers(task)], reason="one")
        return task.filter(pa.array([n > 2 for n in numbers(task)]))


class _DropsOneLeavesOneOutAsItStreams(_DropsOneLeavesOneOut):
    def process(self, task):
        yield from each_row(super().process(task))


@pytest.mark.parametrize("stage", [_DropsOneLeavesOneOut, _DropsOneLeavesOneOutAsItStreams])
def test_bytes_are_counted_once_where_some_are_dropped_and_others_left_out(stage):
    (result,) = run([stage()], batch(1, 2, 3, 4))

    (counts,) = result.counts
    assert counts.dropped == {"one": 1, "some": 1}
    assert counts.dropped_bytes == {"one": 8, "some": 8}
    assert (counts.bytes_in, counts.bytes_out) == (32, 16)


def test_a_stage_that_returns_none_has_dropped_the_whole_task():
    (result,) = run([_Call(lambda task: None)], batch(1, 2))

    assert books(result) == {"in": 2, "out": 0, "created": 0, "dropped": {"call": 2}, "quarantined": 0}


def test_what_a_splitter_adds_is_created():
    (result,) = run([_Call(lambda task: [task, task.slice(0, 1)])], batch(1, 2))

    assert outputs(result) == [("t0.0000", [1, 2]), ("t0.0001", [1])]
    assert books(result) == {"in": 2, "out": 3, "created": 1, "dropped": {}, "quarantined": 0}


def each_row(task):
    for row in range(task.num_items):
        yield task.slice(row, 1)


def test_a_stage_that_streams_documents_is_given_them_once():
    emitted = []
    (result,) = run([_Call(each_row)], batch(1, 2, 3), emitted=emitted)

    assert emitted == [(0, "t0.0000", [1]), (0, "t0.0001", [2]), (0, "t0.0002", [3])]
    assert books(result) == {"in": 3, "out": 3, "created": 0, "dropped": {}, "quarantined": 0}
    assert balance(list(result.counts)) == 0


def test_files_that_are_written_of_a_stream_count_with_the_end_of_the_job(tmp_path):
    """All of them or none: a worker that dies half-way may write others the next time."""
    (tmp_path / STAGING_DIR / "session").mkdir(parents=True)
    emitted = []
    writing = runner(_Call(each_row), JsonlWriter(str(tmp_path)), settings=RunSettings("session"))
    (result,) = writing.run([Job("t0", batch(1, 2, 3))], lambda *given: emitted.append(given))

    assert emitted == []
    assert [item_id for item_id, _ in result.outputs] == ["t0.0000", "t0.0001", "t0.0002"]
    assert len(result.files) == 3


def test_what_a_streaming_stage_leaves_out_is_dropped_once():
    def first_two(task):
        yield from (task.slice(row, 1) for row in range(2))

    (result,) = run([_Call(first_two)], batch(1, 2, 3, 4))

    assert books(result) == {"in": 4, "out": 2, "created": 0, "dropped": {"call": 2}, "quarantined": 0}


def test_a_neighbours_failure_does_not_send_streamed_tasks_twice():
    def fail_on_nine(task):
        if 9 in numbers(task):
            raise ValueError("nine")
        return task

    emitted = []
    first, second = run([_Call(each_row), _Call(fail_on_nine, name="fail")], batch(1, 2), batch(9), emitted=emitted)

    assert emitted == [(0, "t0.0000", [1]), (0, "t0.0001", [2])]
    assert first.counts[0].documents_out == 2
    assert isinstance(second, JobFailure)


def test_only_the_job_that_fails_is_blamed():
    def fail_on_two(tasks):
        if any(numbers(task) == [2] for task in tasks):
            raise ValueError("two")
        return tasks

    good, bad, also_good = run([_CallBatch(fail_on_two)], batch(1), batch(2), batch(3))

    assert outputs(good) == [("t0", [1])]
    assert (bad.stage, bad.error, bad.fault) == ("call_batch", "ValueError: two", Fault.DOCUMENT)
    assert outputs(also_good) == [("t2", [3])]


def test_a_job_done_again_starts_from_its_input_as_it_was_given():
    def add_in_place_and_fail_once(tasks):
        for task in tasks:
            task.data = pa.table({"n": [n + 1 for n in numbers(task)]})
        if len(tasks) > 1:
            raise ValueError("not together")
        return tasks

    first, second = run([_CallBatch(add_in_place_and_fail_once)], batch(1), batch(10))

    assert [outputs(first), outputs(second)] == [[("t0", [2])], [("t1", [11])]]


def test_process_batch_gets_all_tasks_of_a_call_and_keeps_whose_output_is_whose():
    stage = _CallBatch(lambda tasks: [None if numbers(task) == [2] else task for task in tasks])
    runner_ = runner(stage)
    results = runner_.run([Job(f"t{n}", batch(n)) for n in (1, 2, 3)], lambda *_: None)

    assert runner_.stages[0].calls == [3]
    assert [outputs(result) for result in results] == [[("t1", [1])], [], [("t3", [3])]]
    assert [books(result)["dropped"] for result in results] == [{}, {"call_batch": 1}, {}]


class _CountsForEach(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "counts_for_each"
    batch_size = 8

    def process_batch(self, tasks):
        self.context.count("calls")
        for task in tasks:
            self.context.count("documents", task.num_items, of=task)
            self.context.observe("n", task.column("n"), of=task)
        return tasks


def test_what_a_call_of_several_tasks_counts_is_in_the_books_of_the_task_it_is_counted_for():
    books_ = [result.counts[0] for result in run([_CountsForEach()], batch(1, 2), batch(3), batch())]

    assert [own.counted for own in books_] == [{"documents": 2, "calls": 1}, {"documents": 1}, {"documents": 0}]
    assert [sum(own.observed["n"].values()) for own in books_ if own.observed["n"]] == [2, 1]


class _JoinsAndDrops(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Looks at all tasks of a call as one batch, drops the odd numbers for one reason, those over 100 for another."""

    name = "joins_and_drops"
    batch_size = 8

    def process_batch(self, tasks):
        whole = DocumentBatch("joined", pa.concat_tables([task.to_pyarrow() for task in tasks]))
        found = numbers(whole)
        self.context.drop(whole, [n > 100 for n in found], reason="large", values=found)
        self.context.drop(whole, [n <= 100 and n % 2 == 1 for n in found], reason="odd", values=found)
        for n in found:
            if n < 0:
                self.context.quarantine(Quarantined("ValueError: negative", "ValueError", document=str(n)))
        keep = [[n for n in numbers(task) if 0 <= n <= 100 and n % 2 == 0] for task in tasks]
        return [batch(*kept) for kept in keep]


def test_what_is_dropped_from_several_tasks_joined_is_in_the_books_of_those_that_lack_it(tmp_path):
    settings = RunSettings(rejects_path=str(tmp_path / "rejects"), quarantine_path=str(tmp_path / "quarantine"))
    for path in (settings.rejects_path, settings.quarantine_path):
        Path(path).mkdir()
    jobs = [Job(f"t{n}", task) for n, task in enumerate([batch(2, 4), batch(1, 6, 101), batch(3, -2, 8), batch(5)])]
    results = runner(_JoinsAndDrops(), settings=settings).run(jobs, lambda *_: None)
    own = [result.counts[0] for result in results]

    assert [sum(each.dropped.values()) + each.quarantined for each in own] == [0, 2, 2, 1]
    assert [each.created for each in own] == [0, 0, 0, 0]
    totals = Counter()
    for each in own:
        totals += Counter(each.dropped)
    assert totals == {"large": 1, "odd": 3}
    assert sum(each.quarantined for each in own) == 1
    assert all(each.documents_in == each.documents_out + sum(each.dropped.values()) + each.quarantined for each in own)
    staged = [Path(file.temporary) for result in results for file in result.side_files]
    rejected = [json.loads(line) for path in staged if "rejects" in str(path) for line in path.read_text().splitlines()]
    assert sorted(line["reject_value"] for line in rejected) == [1, 3, 5, 101]


class _DropsMoreThanItWasGiven(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Returns what it was given, and drops it as well."""

    name = "drops_more"
    batch_size = 8

    def process_batch(self, tasks):
        for task in tasks:
            self.context.drop(task, [True] * task.num_items, reason="all")
        return tasks


def test_drops_that_no_task_lacks_are_told_all_the_same():
    own = [result.counts[0] for result in run([_DropsMoreThanItWasGiven()], batch(1, 2), batch(3))]

    assert [each.dropped for each in own] == [{"all": 3}, {}]
    assert balance(own) == 0


class _NoteNumbers(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "note_numbers"

    def process(self, task):
        self.context.note_fact(["saw", *numbers(task)])
        return task


class _NoteNumbersOfSeveral(_NoteNumbers):
    batch_size = 8

    def process_batch(self, tasks):
        return [self.process(task) for task in tasks]


@pytest.mark.parametrize("stage", [_NoteNumbers(), _NoteNumbersOfSeveral()], ids=["one", "several"])
def test_facts_are_carried_under_the_name_of_their_stage_however_tasks_are_called(stage):
    results = run([stage], batch(1, 2), batch(3))

    assert [fact for result in results for fact in result.facts] == [
        ("note_numbers", b'["saw",1,2]'),
        ("note_numbers", b'["saw",3]'),
    ]


def test_a_flat_list_is_asked_for_again_one_task_at_a_time():
    stage = _CallBatch(lambda tasks: [row for task in tasks for row in each_row(task)])
    runner_ = runner(stage)
    results = runner_.run([Job("a", batch(1, 2)), Job("b", batch(3))], lambda *_: None)

    assert [outputs(result) for result in results] == [[("a.0000", [1]), ("a.0001", [2])], [("b", [3])]]
    assert runner_.stages[0].calls == [2, 1, 1]


@pytest.mark.parametrize("returned", ["text", 3, ["text"], object()])
def test_something_that_is_no_task_is_a_failure_that_says_what_came(returned):
    (result,) = run([_Call(lambda task: returned)], batch(1))

    assert isinstance(result, JobFailure)
    assert "call: expected process to return a Task, a list of them, or None; got" in result.error


def test_the_context_of_a_call_is_the_calls_own():
    def drop_all_as_even(tasks):
        for task in tasks:
            stage.context.drop(task, pa.array([n % 2 == 0 for n in numbers(task)]), reason="even")
        return [task.filter(pa.array([n % 2 == 1 for n in numbers(task)])) for task in tasks]

    stage = _CallBatch(drop_all_as_even)
    runner_ = runner(stage)
    stage = runner_.stages[0]
    results = runner_.run([Job("a", batch(1, 2)), Job("b", batch(2, 4))], lambda *_: None)

    assert [books(result)["dropped"] for result in results] == [{"even": 1}, {"even": 2}]


# A task that failed before


def fail_on(*bad):
    def check(task):
        found = [n for n in numbers(task) if n in bad]
        if found:
            raise ValueError(f"cannot do {found[0]}")
        return task

    return check


@pytest.mark.parametrize("bad", [(), (0,), (99,), (3, 4), (0, 50, 99), tuple(range(99))])
def test_bisection_finds_exactly_the_bad_documents(bad, tmp_path):
    runner_ = runner(_Call(fail_on(*bad)))
    (result,) = runner_.run([Job("t", batch(*range(100)), Care.ISOLATE)], lambda *_: None)

    assert outputs(result) == [("t", [n for n in range(100) if n not in bad])]
    assert books(result) == {
        "in": 100,
        "out": 100 - len(bad),
        "created": 0,
        "dropped": {},
        "quarantined": len(bad),
    }


def test_one_bad_document_of_many_costs_few_probes():
    calls = []

    def count(task):
        calls.append(task.num_items)
        return fail_on(77)(task)

    run([_Call(count)], batch(*range(128)), care=Care.ISOLATE)

    assert len(calls) <= 1 + 2 * 7 + 1  # as a whole, two at every level, and the good ones


def test_a_batch_whose_rows_depend_on_each_other_is_quarantined_whole():
    class _Together(_Call):
        rows_are_independent = False

    (result,) = run([_Together(fail_on(2), name="together")], batch(1, 2, 3), care=Care.ISOLATE)

    assert result.outputs == []
    assert books(result)["quarantined"] == 3


def test_stepping_announces_every_document_before_it_is_touched():
    crumbs = []
    runner_ = runner(_Call(lambda task: task), leave_crumb=lambda *crumb: crumbs.append(crumb))
    runner_.run([Job("t", batch(5, 6), Care.STEP)], lambda *_: None)

    assert crumbs == [(0, 0, 1, 0), (0, 1, 2, 0), (0, 0, 2, 0)]


def test_stepping_begins_with_the_document_the_last_worker_died_at():
    crumbs = []
    doubled = _Call(lambda task: [task, task], name="doubled")
    runner_ = runner(doubled, _Call(lambda task: task), leave_crumb=lambda *crumb: crumbs.append(crumb))
    runner_.run([Job("t", batch(5, 6), Care.STEP, step_from=Crumb(1, 1, 2, turn=1))], lambda *_: None)

    whole = (0, 0, 2, 0)  # its documents have all passed
    halfway = [(1, 1, 2, 1), (1, 0, 2, 1)]
    assert crumbs == [whole, *halfway, (1, 0, 1, 2), (1, 1, 2, 2), (1, 0, 2, 2)]


def test_a_condemned_document_is_left_out_and_the_others_are_processed():
    seen = []

    def look(task):
        seen.extend(numbers(task))
        return task

    (result,) = run([_Call(look)], batch(5, 6, 7), care=Care.STEP, condemned=((Crumb(0, 1, 2), "killed by SIGSEGV"),))

    assert outputs(result) == [("t0", [5, 7])]
    assert books(result)["quarantined"] == 1
    assert 6 not in seen


def test_the_same_row_of_another_task_that_came_of_the_same_one_is_not_condemned_with_it():
    def pairs(task):
        rows = list(range(task.num_items))
        return [task.take(rows[first : first + 2]) for first in rows[::2]]

    second = ((Crumb(1, 1, 2, turn=2), "killed by SIGSEGV"),)
    (result,) = run(
        [_Call(pairs, name="pairs"), _Call(lambda task: task)],
        batch(1, 2, 3, 4, 5, 6),
        care=Care.STEP,
        condemned=second,
    )

    assert outputs(result) == [("t0.0000", [1, 2]), ("t0.0001", [3]), ("t0.0002", [5, 6])]
    assert [counts.quarantined for counts in result.counts] == [0, 1]


def test_a_stage_that_streams_is_named_by_the_crumb_whenever_it_is_asked_for_more():
    crumbs, asked = [], []

    def stream(task):
        for row in range(2):
            asked.append(crumbs[-1])
            yield task.take([row])

    stages = [_Call(stream, name="streams"), _Call(lambda task: task)]
    runner(*stages, leave_crumb=lambda *crumb: crumbs.append(crumb)).run([Job("t", batch(5, 6, 7))], lambda *_: None)

    assert asked == [(0, 0, 3, 0)] * 2


def test_a_transient_error_is_reported_as_one():
    class _Asks(_Call):
        transient_errors = (TimeoutError,)

    def time_out(task):
        raise TimeoutError("the server is away")

    (result,) = run([_Asks(time_out, name="asks")], batch(1))

    assert (result.fault, result.error) == (Fault.TRANSIENT, "TimeoutError: the server is away")


@pytest.mark.parametrize("at_once", [False, True])
def test_what_was_measured_keeps_no_batch_in_memory_until_the_next_is_there(tmp_path, at_once):
    """Else each is read into fresh memory beside the one before."""
    alive = []

    def measure(task):
        alive.append(weakref.ref(task))
        stage.context.measure("n", task.column("n"), of=task)
        stage.context.drop(task, [True, True, False], reason="two")
        return batch(3)

    def measure_all(tasks):
        return [measure(task) for task in tasks]

    stage = _CallBatch(measure_all) if at_once else _Call(measure)
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    settings = RunSettings("s", observation=Observation("full"), measures_path=str(tmp_path))
    group = runner(stage, settings=settings)
    group.keeps_inputs = False
    number = 2 if at_once else 1
    results = group.run([Job(f"t{n}", batch(1, 2, 3)) for n in range(number)], lambda *_: None)
    gc.collect()

    assert [len(result.side_files) for result in results] == [1] * number  # something was recorded
    assert [ref() for ref in alive] == [None] * number
