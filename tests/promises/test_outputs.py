"""Nothing is deleted at construction, and a run says what it removed, refused or found done."""

import math
import random
import shutil

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, GristmillError, ResumeRefused, RunFailed
from gristmill.metrics.history import read_history
from gristmill.pipeline import Pipeline
from gristmill.runs import progress as telling
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch, FileGroupTask, StagePerfStats

HERE = LocalExecutor(num_workers=0)


class AsIs(ProcessingStage[FileGroupTask, FileGroupTask]):
    def process(self, task):
        return task


@pytest.fixture
def work(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": 1, "text": "one two three"}, {"id": 2, "text": "one"}])
    write_documents(tmp_path / "in" / "b.jsonl", [{"id": 3, "text": "one two"}])
    write_documents(tmp_path / "out" / "old.jsonl", [{"id": 0}])
    return tmp_path


def pipeline(work, *, mode="ignore", min_words=2):
    stages = [JsonlReader(str(work / "in")), ScoreFilter(WordCountFilter(min_words=min_words))]
    return Pipeline("p", stages=[*stages, JsonlWriter(str(work / "out"), mode=mode)])


@pytest.mark.parametrize("writer", [JsonlWriter, ParquetWriter])
def test_making_a_writer_and_a_plan_deletes_nothing(work, writer):
    """Nothing is deleted at construction."""
    before = contents(work)
    Pipeline("p", stages=[JsonlReader(str(work / "in")), writer(str(work / "out"), mode="overwrite")]).plan(HERE)

    assert contents(work) == before


def test_overwrite_acts_when_the_run_starts_and_says_what_it_removed(work):
    """`mode="overwrite"` acts when the run starts, and says what it removed."""
    result = pipeline(work, mode="overwrite").run(HERE)

    assert sorted(contents(work / "out")) == ["a.jsonl", "b.jsonl"]
    assert "removed 1 file of an earlier run" in result.messages[0]
    assert "old.jsonl" in result.messages[0]


def test_a_run_that_cannot_start_removes_nothing(work):
    with pytest.raises(ConfigError, match="memory_limit"):
        pipeline(work, mode="overwrite").run(LocalExecutor(memory_limit="1MB"))

    assert sorted(contents(work / "out")) == ["old.jsonl"]


def test_other_files_stay_where_the_mode_says_so(work):
    assert "old.jsonl" in contents_after(work, mode="ignore")


def contents_after(work, **options):
    pipeline(work, **options).run(HERE)
    return contents(work / "out")


def test_error_refuses_a_directory_in_use(work):
    with pytest.raises(ConfigError, match=r"expected .* to have no files \(mode 'error'\); got .*old.jsonl"):
        pipeline(work, mode="error").run(HERE)

    assert sorted(contents(work / "out")) == ["old.jsonl"]


def test_a_finished_run_says_so_and_changes_nothing(work):
    """Same command again: finished work is not redone."""
    first = pipeline(work).run(HERE, checkpoint_path=work / "run")
    stamps = {path: path.stat().st_mtime_ns for path in (work / "out").glob("*.jsonl")}
    again = pipeline(work).run(HERE, checkpoint_path=work / "run")

    assert again.already_finished
    assert "this run is finished already; nothing was changed" in again.messages[0]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert (again.read, again.written, again.dropped) == (first.read, first.written, first.dropped)
    assert again.output_files == first.output_files


def test_a_changed_threshold_is_never_silently_skipped(work):
    """The ledger knows the plan's fingerprint: a changed threshold is never silently skipped."""
    pipeline(work).run(HERE, checkpoint_path=work / "run")
    before = contents(work / "out")

    with pytest.raises(ResumeRefused, match=r"filter_obj(?s:.)*fresh=True"):
        pipeline(work, min_words=3).run(HERE, checkpoint_path=work / "run")
    assert contents(work / "out") == before

    other = work / "out" / "notes.txt"
    other.write_text("not ours")
    result = pipeline(work, min_words=3).run(HERE, checkpoint_path=work / "run", fresh=True)
    assert [d["id"] for d in read_documents(work / "out") if d["id"]] == [1]  # nothing of the first run is left
    assert other.exists()
    assert any("removed" in message for message in result.messages)


def test_starting_over_leaves_no_reject_of_the_earlier_run(work):
    pipeline(work, min_words=10**4).run(HERE, checkpoint_path=work / "run", rejects_path=work / "rejects")
    before = list((work / "rejects").glob("*.jsonl"))
    pipeline(work, min_words=0).run(HERE, checkpoint_path=work / "run", rejects_path=work / "rejects", fresh=True)

    assert before
    assert not list((work / "rejects").glob("*.jsonl"))


def test_a_run_that_is_refused_leaves_an_earlier_run_as_it_was(work):
    """Nothing is deleted unless a run starts."""
    pipeline(work).run(HERE, checkpoint_path=work / "run")
    before = contents(work / "out")
    ledger = (work / "run" / "ledger.jsonl").read_text()

    with pytest.raises(ConfigError, match="memory_limit"):
        pipeline(work).run(LocalExecutor(memory_limit="1MB"), checkpoint_path=work / "run", fresh=True)
    assert contents(work / "out") == before
    assert (work / "run" / "ledger.jsonl").read_text() == ledger


def test_a_changed_input_is_never_silently_skipped(work):
    """The ledger knows the inputs' size and time."""
    pipeline(work).run(HERE, checkpoint_path=work / "run")
    write_documents(work / "in" / "b.jsonl", [{"id": 4, "text": "four five"}])

    with pytest.raises(ResumeRefused, match=r"b\.jsonl: has changed"):
        pipeline(work).run(HERE, checkpoint_path=work / "run")


# A pipeline that ends in a writer has its run directory in the output, in Python as on the command line.


def test_the_same_call_again_changes_nothing(work):
    first = pipeline(work).run(HERE)
    again = pipeline(work).run(HERE)

    assert again.already_finished
    assert again.run_dir == first.run_dir == str(work / "out" / ".gristmill")
    assert again.output_files == first.output_files


def test_a_changed_threshold_or_input_is_refused_without_a_checkpoint_path_too(work):
    pipeline(work).run(HERE)
    with pytest.raises(ResumeRefused, match=r"min_words 2 then, 3 now(?s:.)*fresh=True"):
        pipeline(work, min_words=3).run(HERE)
    pipeline(work, min_words=3).run(HERE, fresh=True)
    assert [d["id"] for d in read_documents(work / "out") if d["id"]] == [1]
    write_documents(work / "in" / "b.jsonl", [{"id": 4, "text": "four five"}])
    with pytest.raises(ResumeRefused, match=r"b\.jsonl: has changed"):
        pipeline(work, min_words=3).run(HERE)


def test_what_initial_tasks_hold_is_part_of_the_run(tmp_path):
    def write(*texts):
        tasks = [DocumentBatch("b", pa.table({"text": [text]})) for text in texts]
        tasks[0].add_stage_perf(StagePerfStats("earlier", process_time=random.random()))
        return Pipeline("p", stages=[JsonlWriter(str(tmp_path / "out"))]).run(HERE, initial_tasks=tasks)

    write("a", "b")
    assert write("a", "b").already_finished
    with pytest.raises(ResumeRefused, match="initial_tasks: what they hold has changed"):
        write("a", "c")


@pytest.mark.parametrize("mode", ["ignore", "overwrite", "error"])
def test_a_file_of_somebody_else_is_never_replaced_in_silence(work, mode):
    (work / "out" / "old.jsonl").unlink()
    (work / "out" / "a.jsonl").write_text("not ours")
    if mode == "overwrite":
        result = pipeline(work, mode=mode).run(HERE)
        assert "removed 1 file of an earlier run" in result.messages[0]
        return
    with pytest.raises(GristmillError, match=r"a\.jsonl"):
        pipeline(work, mode=mode).run(HERE)
    assert (work / "out" / "a.jsonl").read_text() == "not ours"
    (work / "out" / "a.jsonl").unlink()

    assert pipeline(work, mode=mode).run(HERE).written == 2


def test_a_rejects_file_of_somebody_else_is_not_replaced(work):
    pipeline(work).run(HERE, rejects_path=work / "rejects")
    (rejected,) = (work / "rejects").glob("*.jsonl")
    rejected.write_text("not ours")
    shutil.rmtree(work / "out")

    with pytest.raises(RunFailed, match="expected no such file, or one of this run; this one was already there"):
        pipeline(work).run(HERE, rejects_path=work / "rejects")
    assert rejected.read_text() == "not ours"


class InTwoParts(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task):
        return [task.slice(0, 1), task.slice(1)] if task.num_items > 1 else task


@pytest.mark.parametrize("executor", [HERE, LocalExecutor(num_workers=1)], ids=["here", "1 worker"])
def test_no_output_is_overwritten_by_that_of_another_partition(work, executor):
    """The first part of a batch of `a` is called a.0000, as a file may be."""
    write_documents(work / "in" / "a.0000.jsonl", [{"id": 4, "text": "four"}])
    stages = [JsonlReader(str(work / "in")), InTwoParts(), JsonlWriter(str(work / "out"))]

    with pytest.raises(RunFailed, match=r"out/a\.0000\.jsonl: expected one source partition to write this file; 'a"):
        Pipeline("p", stages=stages).run(executor)


def test_files_that_stay_are_named(work):
    (told,) = [message for message in pipeline(work).run(HERE).messages if "before this run" in message]

    assert told == f"{work}/out: 1 file was there before this run, and will be left alone: ['old.jsonl']"


def test_the_same_files_by_another_run_directory_are_not_in_the_way(work):
    pipeline(work).run(HERE)
    again = pipeline(work).run(HERE, checkpoint_path=work / "another run")

    assert not again.already_finished
    assert again.written == 2


def test_a_pipeline_that_cannot_be_continued_starts_over_and_says_so(work):
    """Its writer stands in the middle: what comes out at the end is in memory only."""

    def copied(min_words):
        return Pipeline("p", stages=[*pipeline(work, min_words=min_words).stages, AsIs()])

    copied(2).run(HERE)
    result = copied(2).run(HERE)
    assert not result.already_finished
    assert any("removed 2 files of an earlier run" in message for message in result.messages)
    with pytest.raises(ResumeRefused, match="min_words 2 then, 3 now"):
        copied(3).run(HERE)


def test_output_names_derive_from_the_source(work):
    """Output is named after its source partition, whatever the order of work."""
    result = pipeline(work).run(HERE)

    assert [path.rpartition("/")[2] for path in result.output_files] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(("interval", "often"), [(0.0, True), (1e9, False)])
def test_the_logging_interval_is_how_often_metrics_are_logged(work, monkeypatch, interval, often):
    """`logging_interval` is honoured: the run log has an entry that often, and one at the end."""
    monkeypatch.setattr(telling, "SNAPSHOT_S", 0.0)  # look all the time, so that only the interval holds entries back
    monkeypatch.setattr(telling, "COST_SHARE", math.inf)
    seen = []
    pipeline(work).run(LocalExecutor(num_workers=0, logging_interval=interval), observer=seen.append)
    history = read_history((work / "out" / ".gristmill" / "metrics.jsonl").read_bytes())

    assert len(seen) >= 2  # while it ran, and at the end
    assert len(history) == (len(seen) if often else 2)  # the first, and the end
    assert history.states()[-1] == "finished"
    assert history.column("run", "", "read")[-1] == seen[-1].read
