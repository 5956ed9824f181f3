"""A stage that searches: what it is given, when it is asked, and that its pipelines are part of the run it is for."""

import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.deduplication_forms import Passes
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import Interrupted
from gristmill.kernels.arrow_arrays import to_numbers
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetReader
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)


class Sums(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A step: of each batch one row with the sum of its numbers. With a pid, it sends that process a signal once."""

    name = "sums"
    makes_new_documents = True

    def __init__(self, pid=0, flag="", *, last=False):
        self.pid, self.flag, self.first_number = pid, flag, 20 if last else 0

    def get_config(self):
        return {}

    def process(self, task):
        numbers = task.column("n").to_pylist()
        if self.pid and numbers[0] >= self.first_number and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(self.pid, signal.SIGINT)
        total = sum(numbers)
        return DocumentBatch("sums", pa.table({"sum": pa.array([total], pa.int64())}))


class AddsShare(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Adds what share of the sum of all numbers a document has: nobody knows that before all are there."""

    name = "adds_share"
    searches = True

    def __init__(self, pid=0, flag="", *, last=False):
        self.pid, self.flag, self.last = pid, flag, last

    def get_config(self):
        return {}

    def searched(self, search):
        rows = search.run("sum", [*search.ahead.reading(["n"]), Sums(self.pid, self.flag, last=self.last)])
        tables = [pa.ipc.open_file(pa.memory_map(file)).read_all() for file in rows.files]
        search.found["total"] = int(sum(to_numbers(table.column("sum"), int).sum() for table in tables))
        return Share(search.found["total"])


class Share(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "adds_share"

    def __init__(self, total):
        self.total = total

    def process(self, task):
        return task.with_column("share", pa.array([n / self.total for n in task.column("n").to_pylist()]))


@pytest.fixture
def source(tmp_path):
    for file in range(3):
        write_documents(tmp_path / "in" / f"{file}.jsonl", [{"n": file * 10 + row} for row in range(10)])
    return tmp_path / "in"


def pipeline(source, out, *stages):
    return Pipeline("shares", stages=[JsonlReader(str(source)), *stages, JsonlWriter(str(out))])


def segments(*stages):
    """How many parts a plan has."""
    return len(Pipeline("p", stages=list(stages)).plan(HERE).segments)


def test_documents_are_put_down_only_where_they_cannot_be_read_again(source, tmp_path):
    read, write = JsonlReader(str(source)), JsonlWriter(str(tmp_path / "out"))
    exact, fuzzy = ExactDeduplication("n"), FuzzyDeduplication("n")

    assert segments(read, exact, write) == 1
    assert segments(read, exact, fuzzy, write) == 1
    assert segments(read, Passes(), exact, write) == 2
    assert segments(read, Passes(), exact, fuzzy, write) == 2
    assert segments(read, exact, Passes(), fuzzy, write) == 2
    assert segments(read, Passes(), exact, Passes(), fuzzy, write) == 3
    assert segments(read, Exchange("n"), exact, write) == 2


def test_a_reader_is_asked_for_the_columns_a_search_wants():
    stage = ParquetReader.__new__(ParquetReader)
    stage.fields, stage.read_kwargs, stage.blocksize, stage.name = None, None, None, "parquet_reader"
    reading = stage.reading_stage()

    assert reading.for_columns(["text"]).fields == ["text"]
    assert reading.for_columns(None).fields is None
    assert reading.fields is None


@pytest.mark.parametrize("ahead", [[], [Passes()]], ids=["read again", "put down"])
def test_a_search_sees_every_document_once_and_is_asked_once(source, tmp_path, ahead):
    result = pipeline(source, tmp_path / "out", *ahead, AddsShare()).run(HERE, quiet=True)
    again = pipeline(source, tmp_path / "out", *ahead, AddsShare()).run(HERE, quiet=True)

    assert result.found == again.found == {"adds_share": {"total": sum(range(30))}}
    assert (result.read, result.written) == (30, 30)
    assert again.already_finished


def test_ctrl_c_in_a_step_stops_the_run_and_the_same_call_continues(source, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    one = LocalExecutor(num_workers=1)
    flag = str(tmp_path / "flag")
    with pytest.raises(Interrupted, match="Run the same command again to continue"):
        pipeline(source, tmp_path / "out", AddsShare(os.getpid(), flag)).run(one, quiet=True)
    assert signal.getsignal(signal.SIGINT) is before
    assert not list((tmp_path / "out").glob("*.jsonl"))
    result = pipeline(source, tmp_path / "out", AddsShare(os.getpid(), flag)).run(one, quiet=True)
    pipeline(source, tmp_path / "undisturbed", AddsShare()).run(HERE, quiet=True)

    assert result.written == 30
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")


def test_a_step_of_which_a_stopped_machine_left_the_ledger_alone_is_begun_again(source, tmp_path):
    step = tmp_path / "out" / ".gristmill" / "search" / "adds_share" / "sum"
    flag = str(tmp_path / "flag")
    with pytest.raises(Interrupted):
        pipeline(source, tmp_path / "out", AddsShare(os.getpid(), flag, last=True)).run(
            LocalExecutor(num_workers=1), quiet=True
        )
    assert (step / "ledger.jsonl").read_text()
    (step / "header.json").unlink()
    pipeline(source, tmp_path / "out", AddsShare()).run(HERE, quiet=True)
    pipeline(source, tmp_path / "undisturbed", AddsShare()).run(HERE, quiet=True)

    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")


def test_what_a_user_watches_is_the_run_while_it_searches(source, tmp_path):
    seen = []
    pipeline(source, tmp_path / "out", Passes(), AddsShare()).run(
        LocalExecutor(num_workers=1), observer=seen.append, quiet=True
    )

    assert {snapshot.name for snapshot in seen} <= {"shares", "shares, adds_share: sum"}
    assert [snapshot.state for snapshot in seen].count("finished") == 1
