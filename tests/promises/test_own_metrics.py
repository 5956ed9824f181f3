"""What a stage's author counts and observes is in every account of a run, once, whatever happened on the way."""

import asyncio
import errno
import json
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.cli.status import status
from gristmill.errors import MachineFailed, StageError
from gristmill.metrics.history import read_history
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow

FILES, ROWS = 3, 40


class MetersDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Counts and observes before it fails, in one way or another, on some document."""

    name = "meters_documents"
    fusible = False

    def __init__(self, fails="", flag=""):
        self.fails, self.flag = fails, flag

    def setup(self, worker_metadata=None):
        self.context.count("set_up")  # of no task

    def process(self, task):
        numbers = task.column("n").to_pylist()
        self.context.count("seen", len(numbers))
        self.context.observe("n", numbers)
        self.context.observe("size", len(numbers) and 7)
        if self.fails == "raises" and 13 in numbers:
            raise ValueError("thirteen")
        if self.fails == "dies" and 13 in numbers:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails == "dies once" and 13 in numbers and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails == "has no room" and 2 * ROWS in numbers and not Path(self.flag).exists():
            raise OSError(errno.EROFS, "Read-only file system")
        return task


class MetersTogether(MetersDocuments):
    """In one group with reader and writer: what it has processed is written before the next is read."""

    name = "meters_documents"
    fusible = True


class StreamsAndMeters(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "streams_and_meters"

    def process(self, task):
        for row in range(task.num_items):
            self.context.count("given")
            yield task.slice(row, 1)
        self.context.count("ended")


class MetersBatches(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "meters_batches"
    batch_size = 2

    def process_batch(self, tasks):
        self.context.count("tasks", len(tasks))
        for task in tasks:
            self.context.count(f"of {task.column('n')[0].as_py() // ROWS}", task.num_items, of=task)
            self.context.observe("documents", task.num_items, of=task)
        return tasks


class MetersInLanes(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Calls overlap, and every one counts for its own task."""

    name = "meters_in_lanes"
    lanes = 8

    async def process(self, task):
        self.context.count("begun", task.num_items)
        await asyncio.sleep(0)
        self.context.observe("n", task.column("n"))
        if 13 in task.column("n").to_pylist():
            raise ValueError("thirteen")
        return task


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for part in range(FILES):
        rows = [json.dumps({"n": part * ROWS + n, "text": "x"}) for n in range(ROWS)]
        (folder / f"{part}.jsonl").write_text("\n".join(rows) + "\n")
    return folder


def run(raw, out, stage, workers=2, **options):
    stages = [JsonlReader(str(raw)), stage, JsonlWriter(str(out))]
    return Pipeline("metered", stages=stages).run(LocalExecutor(num_workers=workers), **options)


@pytest.mark.parametrize(
    ("fails", "workers", "lost"),
    [("", 0, 0), ("", 2, 0), ("raises", 0, 1), ("raises", 2, 1), ("dies", 2, 1), ("dies once", 2, 0)],
)
def test_it_counts_once_however_often_a_task_is_tried(raw, tmp_path, fails, workers, lost):
    result = run(raw, tmp_path / "out", MetersDocuments(fails, str(tmp_path / "flag")), workers)

    good = FILES * ROWS - lost
    counts = result.counts["meters_documents"]
    assert (result.quarantined, counts.counted) == (lost, {"seen": good})
    numbers, sizes = (result.observed["meters_documents"][name] for name in ("n", "size"))
    assert (numbers.num_values, numbers.least) == (good, 0.0)
    assert FILES * ROWS - 1 - numbers.greatest < numbers.greatest / 32
    assert sizes.to_json() == dict.fromkeys(("least", "p50", "p90", "p99", "greatest"), 7.0) | {"values": FILES}


def test_a_run_that_is_continued_has_it_in_its_books_like_one_that_was_not(raw, tmp_path):
    whole = run(raw, tmp_path / "whole", MetersDocuments()).counts["meters_documents"]
    stage, work = MetersTogether("has no room", str(tmp_path / "flag")), tmp_path / "out"
    with pytest.raises(MachineFailed, match="Read-only file system"):
        run(raw, work, stage, workers=0)  # one partition after the other
    (tmp_path / "flag").touch()
    resumed = run(raw, work, stage)
    looked_at_again = run(raw, work, stage)

    assert looked_at_again.already_finished
    assert resumed.resumed, "nothing was committed before the disk failed"
    for result in (resumed, looked_at_again):
        counts = result.counts["meters_documents"]
        assert (counts.counted, counts.observed) == (whole.counted, whole.observed)


def test_it_is_in_every_account_of_the_run_without_a_further_edit(raw, tmp_path, capsys):
    snapshots = []
    result = run(raw, tmp_path / "out", MetersDocuments(), observer=snapshots.append)
    capsys.readouterr()
    status(str(tmp_path / "out"))
    shown = capsys.readouterr().out
    home = tmp_path / "out" / ".gristmill"
    report = json.loads((home / "report.json").read_text())
    history = read_history((home / "metrics.jsonl").read_bytes())
    told = json.loads((home / "status.json").read_text())["stages"][-2]

    assert result.stage_metrics["meters_documents"]["seen"] == FILES * ROWS
    assert report["metrics"] == {"meters_documents": {"seen": FILES * ROWS}}
    assert report["observed"]["meters_documents"]["n"] == result.observed["meters_documents"]["n"].to_json()
    assert told["metrics"] == snapshots[-1].stages[-2].metrics == {"seen": FILES * ROWS}
    assert history.column("metric", "meters_documents", "seen")[-1] == FILES * ROWS
    assert told["observed"]["size"]["p50"] == 7.0
    for words in (shown, str(result)):
        assert "meters_documents: seen 120\n" in words
        assert "meters_documents: size: values 3, least 7, p50 7, p90 7, p99 7, greatest 7\n" in words


@pytest.mark.parametrize("workers", [0, 2])
def test_stages_that_stream_or_take_several_tasks_count_too(raw, workers):
    stages = [JsonlReader(str(raw)), StreamsAndMeters(), MetersBatches()]
    result = Pipeline("metered", stages=stages).run(LocalExecutor(num_workers=workers))

    assert result.counts["streams_and_meters"].counted == {"given": FILES * ROWS, "ended": FILES}
    assert result.counts["meters_batches"].counted == {"tasks": FILES * ROWS, "of 0": 40, "of 1": 40, "of 2": 40}
    assert result.observed["meters_batches"]["documents"].num_values == FILES * ROWS


@pytest.mark.parametrize("workers", [0, 1])
def test_calls_that_overlap_count_too(raw, workers):
    stages = [JsonlReader(str(raw)), StreamsAndMeters(), MetersInLanes()]
    result = Pipeline("metered", stages=stages).run(LocalExecutor(num_workers=workers))

    good = FILES * ROWS - 1
    assert (result.quarantined, result.counts["meters_in_lanes"].counted) == (1, {"begun": good})
    assert result.observed["meters_in_lanes"]["n"].num_values == good


def test_both_sides_of_an_exchange_have_theirs(raw, tmp_path):
    behind = MetersDocuments().with_(name="meters_behind")
    stages = [JsonlReader(str(raw)), MetersDocuments(), Exchange("n", 2), behind, JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("metered", stages=stages).run(LocalExecutor(num_workers=1))

    for stage in ("meters_documents", "meters_behind"):
        assert result.counts[stage].counted == {"seen": FILES * ROWS}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda c: c.count("x", 1.5),
            r"context.count: expected a whole number for 'x'; got 1.5. context.observe takes",
        ),
        (lambda c: c.count("x", "3"), "context.count: expected a whole number for 'x'; got '3'"),
        (lambda c: c.count("", 1), "context.count: expected a name of 1 to 80 characters; got ''"),
        (lambda c: c.count(None, 1), "context.count: expected a name of 1 to 80 characters; got None"),
        (lambda c: c.observe("y" * 81, 1), "context.observe: expected a name of 1 to 80 characters; got 'yy"),
        (lambda c: c.observe("x", "3"), "context.observe: expected a number, or an array of numbers, for 'x'; got '3'"),
        (lambda c: c.observe("x", None), "context.observe: expected a number, .* got None"),
        (lambda c: c.observe("x", ["a"]), r"context.observe: expected a number, .* got \['a'\]"),
    ],
    ids=["share", "text", "no name", "none", "long name", "text value", "no value", "texts"],
)
def test_a_mistake_is_named(call, words):
    with pytest.raises(StageError, match=f"^{words}"):
        call(MetersDocuments().context)


def test_outside_of_a_run_a_stage_counts_for_whoever_tests_it():
    stage = MetersDocuments()
    stage.process(DocumentBatch("d", pa.table({"n": [1, 2]})))

    assert stage.context.own_counts.counted == {"seen": 2}
