"""The reproductions in which a failing machine or program was blamed on documents, and a sibling of each."""

import errno
import json
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import MachineFailed, RunFailed, StageBroken, TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.fault, pytest.mark.slow]
ROWS = 60
NUMBERS = [
    "ENOSPC",
    "EDQUOT",
    "EROFS",
    "EIO",
    "EMFILE",
    "ESTALE",
    "EFBIG",
    "ENOENT",
    "EACCES",
    "ETIMEDOUT",
    "ECONNRESET",
]


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch):
    monkeypatch.setattr("gristmill.engine.policies.retry.MAX_PAUSE_S", 0.01)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(3):
        lines = [json.dumps({"id": f"{file}-{n}", "text": "word " * n}) for n in range(ROWS)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "in"


def lines(directory):
    return sorted(line for path in directory.glob("*.jsonl") for line in path.read_text().splitlines())


@dataclass
class Raises(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises on documents whose number is at least `first`, and notes each of its calls."""

    first: int = 0
    calls: str = ""
    name: str = "raises"

    def process(self, task):
        if self.calls:
            with Path(self.calls).open("a") as file:
                file.write("call\n")
        numbers = [int(document_id.partition("-")[2]) for document_id in task.column("id").to_pylist()]
        if any(number >= self.first for number in numbers):
            raise ValueError(f"number {max(numbers)}")
        return task


@dataclass
class RemovesTree(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Removes a directory of the run while it is at work, as a cleaning job would; then some documents fail."""

    victim: str = ""
    name: str = "removes_tree"

    def process(self, task):
        shutil.rmtree(self.victim, ignore_errors=True)
        if "0-5" in task.column("id").to_pylist():
            raise ValueError("five")
        return task


@dataclass
class FailingWriter(JsonlWriter):
    """A writer whose disk fails with a given number while a file says so."""

    number: int = errno.ENOSPC
    healed: str = ""

    def encode(self, task):
        if not Path(self.healed).exists():
            raise OSError(self.number, os.strerror(self.number))
        return super().encode(task)


@pytest.mark.parametrize(
    "number",
    [getattr(errno, name) for name in NUMBERS],
    ids=NUMBERS,
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_writer_that_cannot_write_costs_no_document(number, workers, source, tmp_path):
    healed, out = tmp_path / "healed", tmp_path / "out"
    stages = [JsonlReader(str(source)), FailingWriter(str(out), number=number, healed=str(healed))]
    pipeline = Pipeline("writes", stages=stages)
    with pytest.raises(MachineFailed, match=os.strerror(number)) as stopped:
        pipeline.run(LocalExecutor(num_workers=workers))
    assert str(out) in str(stopped.value)
    assert "run the same command again" in str(stopped.value)
    assert list((out / ".gristmill/quarantine").glob("*.jsonl")) == []

    healed.touch()
    result = pipeline.run(LocalExecutor(num_workers=workers))
    assert (result.read, result.written, result.quarantined) == (3 * ROWS, 3 * ROWS, 0)
    assert lines(out) == lines(source)


@pytest.mark.parametrize("victim", ["quarantine/.gristmill", "quarantine"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_quarantine_that_cannot_be_written_ends_the_run(victim, workers, source, tmp_path):
    out = tmp_path / "out"
    removes = RemovesTree(str(out / ".gristmill" / victim))
    pipeline = Pipeline("cleaned", stages=[JsonlReader(str(source)), removes, JsonlWriter(str(out))])
    with pytest.raises(MachineFailed, match=r"quarantine/.*No such file or directory"):
        pipeline.run(LocalExecutor(num_workers=workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_staging_that_is_removed_ends_the_run_and_the_same_command_goes_on(workers, source, tmp_path):
    out = tmp_path / "out"
    stages = [JsonlReader(str(source)), RemovesTree(str(out / ".gristmill/tmp")), JsonlWriter(str(out))]
    with pytest.raises(MachineFailed, match="No such file or directory"):
        Pipeline("cleaned", stages=stages).run(LocalExecutor(num_workers=workers))

    assert lines(out) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_rejects_that_cannot_be_written_cost_no_partition(workers, source, tmp_path):
    out, rejects = tmp_path / "out", tmp_path / "rejects"
    removes = RemovesTree(str(rejects / ".gristmill"))
    short = ScoreFilter(WordCountFilter(min_words=30))
    pipeline = Pipeline("half", stages=[JsonlReader(str(source)), removes, short, JsonlWriter(str(out))])
    with pytest.raises(MachineFailed, match=r"rejects/.*No such file or directory"):
        pipeline.run(LocalExecutor(num_workers=workers), rejects_path=rejects)

    assert lines(out) == []


@dataclass
class CallsKernelWithTooLittle(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Gives a compiled kernel too short an array, for one document, until a file says that it is mended."""

    mended: str = ""
    name: str = "calls_kernel"

    def process(self, task):
        if "2-7" in task.column("id").to_pylist() and not Path(self.mended).exists():
            data, numbers = np.frombuffer(b"a b", np.uint8), np.zeros(1, np.int64)
            CompiledKernel("text.characters", "count_characters")(data, numbers, numbers, 2, np.zeros(1, np.int64))
        return task


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bug_of_ours_quarantines_nothing_even_where_other_documents_have_passed(workers, source, tmp_path):
    mended, out = tmp_path / "mended", tmp_path / "out"
    stages = [JsonlReader(str(source)), CallsKernelWithTooLittle(str(mended)), JsonlWriter(str(out))]
    pipeline = Pipeline("kernels", stages=stages)
    with pytest.raises(RunFailed, match=r"calls_kernel: a bug in gristmill, not in the data: .*EngineBug: ") as stopped:
        pipeline.run(LocalExecutor(num_workers=workers))
    assert not isinstance(stopped.value, StageBroken)
    assert list((out / ".gristmill/quarantine").glob("*.jsonl")) == []

    mended.touch()
    result = pipeline.run(LocalExecutor(num_workers=workers))
    assert (result.read, result.written, result.quarantined) == (3 * ROWS, 3 * ROWS, 0)
    assert lines(out) == lines(source)


def test_a_batch_of_bad_documents_is_given_up_at_the_limit(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"id": f"0-{n}", "text": "x"}) + "\n" for n in range(300)))
    stages = [
        JsonlReader(str(tmp_path / "in.jsonl")),
        Raises(5, str(tmp_path / "calls")),
        JsonlWriter(str(tmp_path / "out")),
    ]
    with pytest.raises(TooManyQuarantined, match=r"at most 10 documents.*of one batch failed"):
        Pipeline("limit", stages=stages).run(LocalExecutor(num_workers=0), max_quarantined=10)

    assert len((tmp_path / "calls").read_text().splitlines()) < 100


def test_a_batch_of_bad_documents_is_given_up_where_none_passes(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"id": f"0-{n}", "text": "x"}) + "\n" for n in range(3000)))
    stages = [
        JsonlReader(str(tmp_path / "in.jsonl")),
        Raises(0, str(tmp_path / "calls")),
        JsonlWriter(str(tmp_path / "out")),
    ]
    with pytest.raises(StageBroken, match="100 documents failed and none has passed\n  100 × ValueError"):
        Pipeline("none", stages=stages).run(LocalExecutor(num_workers=0))

    assert len((tmp_path / "calls").read_text().splitlines()) < 300


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_of_bad_documents_among_good_ones_is_quarantined_whole(workers, tmp_path):
    (tmp_path / "in").mkdir()
    for file, first in enumerate((0, 1000, 2000)):  # all of the second and third file is bad
        numbers = range(first, first + 200)
        text = "".join(json.dumps({"id": f"{file}-{n}", "text": "x"}) + "\n" for n in numbers)
        (tmp_path / "in" / f"{file}.jsonl").write_text(text)
    stages = [JsonlReader(str(tmp_path / "in")), Raises(500), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("mixed", stages=stages).run(LocalExecutor(num_workers=workers), max_quarantined=None)

    assert (result.read, result.written, result.quarantined) == (600, 200, 400)


def test_a_tenth_of_the_documents_is_the_limit_if_nothing_is_said(tmp_path):
    def run(bad, out, **options):
        text = "".join(json.dumps({"id": f"0-{n}", "text": "x"}) + "\n" for n in range(1000))
        (tmp_path / "in.jsonl").write_text(text)
        stages = [JsonlReader(str(tmp_path / "in.jsonl")), Raises(1000 - bad), JsonlWriter(str(tmp_path / out))]
        return Pipeline("tenth", stages=stages).run(LocalExecutor(num_workers=0), **options)

    assert run(100, "few").quarantined == 100
    with pytest.raises(TooManyQuarantined, match="at most 10 % of the documents read"):
        run(101, "many")
    assert run(101, "any", max_quarantined=None).quarantined == 101


@dataclass
class Away(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Asks a server that never answers about one document."""

    transient_errors = (ConnectionError,)
    name: str = "away"

    def process(self, task):
        if "1-7" in task.column("id").to_pylist():
            raise ConnectionError("nobody there")
        return task


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_declared_transient_that_lasts_costs_one_document(workers, source, tmp_path):
    stages = [JsonlReader(str(source)), Away(), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("away", stages=stages).run(LocalExecutor(num_workers=workers))
    (error,) = result.errors

    assert (result.read, result.written, result.quarantined, result.lost_parts) == (180, 179, 1, 0)
    assert (error.stage, error.kind, error.example.document_id) == ("away", "ConnectionError", "1-7")


class DeclaresEverything(ScoreFilter):
    """Says that any error of the system passes."""

    transient_errors = (OSError,)


def test_a_stage_cannot_declare_the_runs_own_files_transient(source, tmp_path):
    out, rejects = tmp_path / "out", tmp_path / "rejects"
    removes = RemovesTree(str(rejects / ".gristmill"))
    short = DeclaresEverything(WordCountFilter(min_words=30))
    pipeline = Pipeline("half", stages=[JsonlReader(str(source)), removes, short, JsonlWriter(str(out))])
    with pytest.raises(MachineFailed, match=r"rejects/.*No such file or directory"):
        pipeline.run(LocalExecutor(num_workers=0), rejects_path=rejects)


class KillsOn(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends its process on the first document of each file, by one signal or another."""

    name = "kills_on"

    def __init__(self, number):
        self.number = number

    def process(self, task):
        if any(document_id.endswith("-0") for document_id in task.column("id").to_pylist()):
            os.kill(os.getpid(), self.number)
        return task


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGKILL, signal.SIGRTMIN + 6])
def test_a_killer_in_every_file_is_not_a_broken_stage(source, tmp_path, number):
    for file in range(3, 6):
        (source / f"{file}.jsonl").write_text((source / "0.jsonl").read_text().replace('"0-', f'"{file}-'))
    stages = [JsonlReader(str(source)), KillsOn(number), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("killers", stages=stages).run(LocalExecutor(num_workers=2))

    assert (result.read, result.written, result.quarantined) == (360, 354, 6)


@dataclass
class Joined(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends its process on one batch, whose rows belong together."""

    rows_are_independent = False
    name: str = "joined"

    def process(self, task):
        if "1-0" in task.column("id").to_pylist():
            os._exit(9)
        return task


def test_a_batch_that_cannot_be_divided_and_kills_its_worker_is_put_aside(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(4):
        (tmp_path / "in" / f"{file}.jsonl").write_text(json.dumps({"id": f"{file}-0", "text": "x"}) + "\n")
    stages = [JsonlReader(str(tmp_path / "in"), files_per_partition=1), Joined(), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("joined", stages=stages).run(LocalExecutor(num_workers=1), max_quarantined=None)

    assert result.written == 3
    assert result.quarantined + result.lost_parts == 1


def test_files_that_cannot_be_read_count_by_their_bytes_however_few_there_are(source, tmp_path):
    (source / "damaged.jsonl.gz").write_bytes(b"\x1f\x8b" + bytes(range(256)) * 200)
    stages = [JsonlReader(str(source)), JsonlWriter(str(tmp_path / "out"))]
    with pytest.raises(TooManyQuarantined, match=r"1 part of files .* that could not be read"):
        Pipeline("damaged", stages=stages).run(LocalExecutor(num_workers=0))

    assert len(lines(tmp_path / "out")) == 180


def test_rejects_beside_the_output_are_not_taken_for_the_quarantine(source, tmp_path):
    out = tmp_path / "out"
    stages = [JsonlReader(str(source)), Raises(59), ScoreFilter(WordCountFilter(min_words=30)), JsonlWriter(str(out))]
    result = Pipeline("beside", stages=stages).run(LocalExecutor(num_workers=0), rejects_path=out)

    assert [error.stage for error in result.errors] == ["raises"]
    assert result.rejects_files
    assert set(result.rejects_files).isdisjoint(result.quarantine_files)


@dataclass
class Streams(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Streams its documents one by one and raises behind a bad one."""

    name: str = "streams"
    bad: frozenset[str] = field(default=frozenset({"0-3", "1-7"}))

    def process(self, task):
        for row, document_id in enumerate(task.column("id").to_pylist()):
            yield task.slice(row, 1)
            if document_id in self.bad:
                raise ValueError(document_id)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stage_that_streams_and_then_raises_counts_every_document_once(workers, source, tmp_path):
    stages = [JsonlReader(str(source)), Streams(), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("streams", stages=stages).run(LocalExecutor(num_workers=workers))

    assert (result.read, result.created, result.written, result.quarantined) == (180, 0, 178, 2)
    assert len(lines(tmp_path / "out")) == 178


def test_a_resumed_run_is_held_to_the_limit_as_a_whole(tmp_path):
    (tmp_path / "in").mkdir()
    for file, numbers in enumerate((range(5000), range(4200, 5200))):  # a fifth of the second file is bad, 3 % of all
        text = "".join(json.dumps({"id": f"{file}-{n}", "text": "x"}) + "\n" for n in numbers)
        (tmp_path / "in" / f"{file}.jsonl").write_text(text)
    stages = [JsonlReader(str(tmp_path / "in")), Raises(5000), JsonlWriter(str(tmp_path / "out"))]
    pipeline = Pipeline("whole", stages=stages)
    first = pipeline.run(LocalExecutor(num_workers=0))
    ledger = tmp_path / "out/.gristmill/ledger.jsonl"
    ledger.write_text("".join(line for line in ledger.read_text().splitlines(keepends=True) if '"root":0' in line))

    again = pipeline.run(LocalExecutor(num_workers=0))
    assert again.resumed
    assert (again.read, again.quarantined) == (first.read, first.quarantined) == (6000, 200)
