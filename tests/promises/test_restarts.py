"""What did not reach the disk before the machine stopped is done again: the output is as if nothing had happened."""

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.engine.commands import Finish
from gristmill.errors import Interrupted
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.directory import ON_DISK
from gristmill.runs.run import Ending, Run
from gristmill.runs.user import RunOptions
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job


def copy_documents(work):
    stages = [JsonlReader(str(work / "in")), JsonlWriter(str(work / "out"))]
    return Pipeline("copy", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=work / "run")


def outputs(work):
    return {path.name: path.read_bytes() for path in (work / "out").glob("*.jsonl")}


def test_files_damaged_when_the_machine_stopped_are_written_again(tmp_path):
    for part in range(4):
        write_documents(tmp_path / "in" / f"{part}.jsonl", [{"text": f"document {part}"}] * 3)
    copy_documents(tmp_path)
    expected = outputs(tmp_path)
    zeroed, short, gone, _ = sorted((tmp_path / "out").glob("*.jsonl"))
    zeroed.write_bytes(bytes(zeroed.stat().st_size))
    short.write_bytes(b"")
    gone.unlink()
    (tmp_path / "run" / "report.json").unlink()  # it was at work when it happened
    (tmp_path / "run" / "start").write_text("the start before this one")

    result = copy_documents(tmp_path)
    assert outputs(tmp_path) == expected
    assert result.balanced
    assert result.written == 12
    assert any("3 are done again" in message for message in result.messages)


def test_a_finished_run_says_that_its_files_were_looked_at(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    copy_documents(tmp_path)
    (tmp_path / "run" / "start").write_text("the start before this one")
    result = copy_documents(tmp_path)

    assert result.already_finished
    assert any("checked those of 1 source partitions; 0 are done again" in message for message in result.messages)


def group_documents(work, executor=None):
    stages = [
        JsonlReader(str(work / "in")),
        ScoreFilter(WordCountFilter(min_words=2)),
        Exchange("text", 2),
        JsonlWriter(str(work / "out")),
    ]
    pipeline = Pipeline("group", stages=stages)
    executor = executor or LocalExecutor(num_workers=0)
    return pipeline.run(executor, checkpoint_path=work / "run", rejects_path=str(work / "rejects"))


def test_what_a_finished_run_wrote_before_an_exchange_is_written_again_too(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "one"}, {"text": "one two"}])
    group_documents(tmp_path)
    (rejects,) = (tmp_path / "rejects").glob("*.jsonl")
    expected = outputs(tmp_path), rejects.read_bytes()
    rejects.write_bytes(bytes(len(expected[1])))
    for segment in (1, 2):
        (tmp_path / "run" / f"segment-{segment}" / "start").write_text("the start before this one")

    result = group_documents(tmp_path)
    assert not result.already_finished
    assert (outputs(tmp_path), rejects.read_bytes()) == expected
    assert group_documents(tmp_path).already_finished


@pytest.fixture
def forced(monkeypatch):
    """The files that were forced to disk."""
    found = []
    real = os.fsync

    def note_and_force(descriptor):
        found.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note_and_force)
    return found


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_forced_to_disk_before_it_is_reported_where_a_run_may_outlive_its_machine(tmp_path, forced, durable):
    writer = JsonlWriter(str(tmp_path / "out"))
    plan = compile_chain("write", [writer], [DocumentBatch("b", pa.table({"text": ["a", "b"]}))])
    run = Run(plan, RunOptions(checkpoint_path=tmp_path / "run"), durable=durable)
    inodes = []

    def drive(segment):
        segment.prepare_outputs()
        group = GroupRunner(plan.groups[0], last=True, settings=segment.settings)
        (outcome,) = group.run([Job("t", plan.sources[0])], lambda *_: None)
        inodes.extend(Path(file.temporary).stat().st_ino for file in outcome.files)
        return Ending(Finish("stopped"))

    with pytest.raises(Interrupted):
        run.execute(drive)
    run.close()
    (inode,) = inodes

    assert (inode in forced) is durable


@pytest.mark.parametrize("durable", [True, False])
def test_a_local_run_forces_its_files_if_it_is_asked_to(tmp_path, forced, durable):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    stages = [JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))]
    executor = LocalExecutor(num_workers=0, durable=durable)
    Pipeline("copy", stages=stages).run(executor, checkpoint_path=tmp_path / "run")
    (output,) = (tmp_path / "out").glob("*.jsonl")

    assert (output.stat().st_ino in forced) is durable
    assert (tmp_path / "run" / "ledger.jsonl").stat().st_ino in forced
    assert ((tmp_path / "run" / "start").read_text() == ON_DISK) is durable


def test_what_nobody_looks_at_after_a_restart_is_forced(tmp_path, forced):
    """What decides which files are looked at, and what lies between the pipelines of a workflow or outlives it."""
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": str(n), "text": f"text {n % 3}"} for n in range(6)])
    out, index = tmp_path / "out", tmp_path / "index"
    workflow = partial(ExactDeduplicationWorkflow, input_path=str(tmp_path / "in"), input_filetype="jsonl")
    workflow(str(out), id_field="id", index=str(index)).run(executor=LocalExecutor(num_workers=0))
    again = workflow(str(tmp_path / "again"), consult=[str(index)], perform_removal=False)
    again.run(executor=LocalExecutor(num_workers=0))  # what lies between the steps is still there
    search = tmp_path / "again" / ".gristmill" / "exact" / "search" / "exact_deduplication"
    names = ("duplicates.parquet", "report.json", ".gristmill/exact/segment-1/start")
    expected = [out / name for name in (*names, ".gristmill/exact/segment-1/header.json")]
    expected += [search / "removals.npy", *index.glob("*/rows/*.arrow"), *(search / "index").iterdir()]

    assert len(expected) > len(names) + 4
    assert [path for path in expected if path.stat().st_ino not in forced] == []


def test_rejected_documents_are_forced_as_outputs_are(tmp_path, forced):
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "one"}, {"text": "one two"}])
    group_documents(tmp_path, LocalExecutor(num_workers=0, durable=True))
    (rejects,) = (tmp_path / "rejects").glob("*.jsonl")

    assert rejects.stat().st_ino in forced
