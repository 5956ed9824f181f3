"""Nothing is deleted at construction, and a run says what it removed, refused or found done."""

import json
import math

import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends import telling
from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter, ParquetWriter

HERE = LocalExecutor(num_workers=0)


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
    logged = [json.loads(line) for line in (work / "out" / ".gristmill" / "metrics.jsonl").read_text().splitlines()]

    assert len(seen) > 2
    assert len(logged) == (len(seen) if often else 1)
    assert logged[-1]["state"] == "finished"
