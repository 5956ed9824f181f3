"""What is in quarantine goes through again once its cause is mended: exactly once, with the bytes of a sound run."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


@dataclass
class NeedsAFile(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises on every third document until somebody has put a file where it looks."""

    path: str = ""
    name: str = "needs_a_file"

    def process(self, task):
        if any(int(n) % 3 == 1 for n in task.column("id").to_pylist()) and not Path(self.path).exists():
            raise LookupError("no dictionary")
        return task


@dataclass
class Calls(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Asks a function of the user's about every document."""

    function: Callable[[int], object]
    name: str = "calls"

    def process(self, task):
        found = [self.function(int(n)) for n in task.column("id").to_pylist()]
        return None if "drop" in found else task


def function(code):
    """The same function before and after it was mended."""
    names = {"__name__": "users_module"}
    exec(code, names)
    return names["judge"]


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(4):
        numbers = range(10 * file, 10 * file + (10 if file else 1))  # the first file has no bad document
        lines = [json.dumps({"id": str(n), "text": f"text {n}"}) for n in numbers]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "in"


def run(source, out, stage, *, between=(), mode="ignore", **options):
    stages = [JsonlReader(str(source)), stage, *between, JsonlWriter(str(out), mode=mode)]
    return Pipeline("retry", stages=stages).run(
        LocalExecutor(num_workers=0), checkpoint_path=out / ".gristmill", **options
    )


def files(directory):
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.jsonl"))}


@pytest.mark.parametrize("between", [(), (Exchange("id"),)], ids=["plain", "exchange"])
def test_what_failed_is_done_again_once_its_cause_is_mended(source, tmp_path, between):
    stage = NeedsAFile(str(tmp_path / "dictionary"))
    first = run(source, tmp_path / "out", stage, between=between)
    assert (first.read, first.written, first.quarantined) == (31, 21, 10)

    (tmp_path / "dictionary").touch()
    again = run(source, tmp_path / "out", stage, between=between, retry_quarantined=True)
    assert (again.read, again.written, again.quarantined) == (31, 31, 0)
    assert again.quarantine_files == []
    sound = run(source, tmp_path / "sound", stage, between=between)
    assert files(tmp_path / "out") == files(tmp_path / "sound")
    assert sound.written == 31

    third = run(source, tmp_path / "out", stage, between=between, retry_quarantined=True)
    assert third.already_finished
    assert files(tmp_path / "out") == files(tmp_path / "sound")


def test_partitions_without_failures_are_left_as_they_are(source, tmp_path):
    stage = NeedsAFile(str(tmp_path / "dictionary"))
    run(source, tmp_path / "out", stage)
    before = (tmp_path / "out" / "0.jsonl").stat().st_mtime_ns

    (tmp_path / "dictionary").touch()
    again = run(source, tmp_path / "out", stage, retry_quarantined=True)

    assert (tmp_path / "out" / "0.jsonl").stat().st_mtime_ns == before
    assert any("3 source partitions with 10 quarantined documents are done again" in m for m in again.messages)


def test_what_still_fails_stays_in_quarantine(source, tmp_path):
    stage = NeedsAFile(str(tmp_path / "dictionary"))
    first = run(source, tmp_path / "out", stage)
    again = run(source, tmp_path / "out", stage, retry_quarantined=True)

    assert (again.written, again.quarantined) == (first.written, first.quarantined)
    assert sum(len(Path(file).read_text().splitlines()) for file in again.quarantine_files) == 10


def test_mended_code_is_taken_for_what_failed(source, tmp_path):
    run(source, tmp_path / "out", Calls(function("def judge(n):\n  assert n % 3 != 1")))
    mended = Calls(function("def judge(n):\n  assert n % 3 != 5"))
    with pytest.raises(ResumeRefused, match="With retry_quarantined=True"):
        run(source, tmp_path / "out", mended)

    again = run(source, tmp_path / "out", mended, retry_quarantined=True)
    assert (again.written, again.quarantined) == (31, 0)
    assert any("the code of a stage has changed" in message for message in again.messages)


@pytest.mark.parametrize("between", [(), (Exchange("id"),)], ids=["plain", "exchange"])
def test_a_changed_parameter_is_refused_all_the_same(source, tmp_path, between):
    run(source, tmp_path / "out", NeedsAFile(str(tmp_path / "dictionary")), between=between)
    before = files(tmp_path / "out")

    other = NeedsAFile(str(tmp_path / "other"))
    with pytest.raises(ResumeRefused, match="needs_a_file: path"):
        run(source, tmp_path / "out", other, between=between, retry_quarantined=True)
    assert files(tmp_path / "out") == before


def test_what_the_mended_code_does_not_give_any_more_is_removed(source, tmp_path):
    bad = "def judge(n):\n  assert n % 3 != 1"
    run(source, tmp_path / "out", Calls(function(bad)))
    drops = "def judge(n):\n  return 'drop' if n // 10 == 1 else None"
    again = run(source, tmp_path / "out", Calls(function(drops)), retry_quarantined=True)

    assert (again.written, again.dropped_total, again.quarantined) == (21, 10, 0)
    assert sorted(files(tmp_path / "out")) == ["0.jsonl", "2.jsonl", "3.jsonl"]


def test_a_writer_that_wants_an_empty_directory_takes_its_own_files_for_its_own(source, tmp_path):
    for path in sorted(source.glob("*.jsonl"))[1:]:
        path.unlink()
    (source / "0.jsonl").write_text('{"id": "1", "text": "x"}\n{"id": "2", "text": "x"}\n')
    stage = NeedsAFile(str(tmp_path / "dictionary"))
    run(source, tmp_path / "out", stage, mode="error")

    (tmp_path / "dictionary").touch()
    again = run(source, tmp_path / "out", stage, mode="error", retry_quarantined=True)
    assert (again.written, again.quarantined) == (2, 0)


def test_a_crash_after_the_quarantine_was_let_go_loses_nothing(source, tmp_path):
    stage = NeedsAFile(str(tmp_path / "dictionary"))
    first = run(source, tmp_path / "out", stage)
    for file in first.quarantine_files:  # what the retry does before it begins; then it is killed
        Path(file).unlink()

    (tmp_path / "dictionary").touch()
    again = run(source, tmp_path / "out", stage)
    assert (again.written, again.quarantined) == (31, 0)
