"""A pipeline with an exchange is one run to its user: one limit, one directory, one set of file names."""

import signal

import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, Interrupted, ResumeRefused, TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.runs.run import Run
from gristmill.runs.user import RunOptions
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)


class FailsOnSomeIds(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises wherever one of `bad` is in the batch."""

    def __init__(self, name: str, bad) -> None:
        self.name = name
        self.bad = sorted(bad)

    def process(self, task):
        if not set(self.bad).isdisjoint(task.column("id").to_pylist()):
            raise ValueError("a bad one")
        return task


def write_corpus(tmp_path, rows, files=2):
    for file in range(files):
        documents = [{"id": f"{file}-{row}", "text": f"text {file} {row}"} for row in range(rows)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)


def failing(tmp_path, first, second, *, writer=True):
    ends = [JsonlWriter(str(tmp_path / "out"))] if writer else []
    stages = [FailsOnSomeIds("first", first), Exchange("id", 2), FailsOnSomeIds("second", second), *ends]
    return Pipeline("fails", stages=[JsonlReader(str(tmp_path / "in")), *stages])


@pytest.mark.parametrize("writer", [True, False], ids=["writer", "tasks"])
def test_a_limit_reached_behind_an_exchange_is_told_as_it_was_given(tmp_path, writer):
    write_corpus(tmp_path, 5)
    pipeline = failing(tmp_path, ["0-1"], ["0-2", "1-2"], writer=writer)
    with pytest.raises(TooManyQuarantined, match="expected at most 1 document in quarantine") as stopped:
        pipeline.run(HERE, quiet=True, max_quarantined=1)

    result = stopped.value.result
    assert (result.read, result.balanced) == (10, True)
    assert "0 documents" not in str(stopped.value)


def test_a_limit_reached_at_the_end_is_reached_whenever_the_run_is_asked_for(tmp_path):
    write_corpus(tmp_path, 5)
    for _ in range(2):
        with pytest.raises(TooManyQuarantined, match="got 3 of 10 read") as reached:
            failing(tmp_path, ["0-1"], ["0-2", "1-3"]).run(HERE, quiet=True, max_quarantined=0.25)
        assert (reached.value.result.written, reached.value.result.quarantined) == (7, 3)
    assert failing(tmp_path, ["0-1"], ["0-2", "1-3"]).run(HERE, quiet=True, max_quarantined=0.3).written == 7


def test_a_share_is_one_of_all_that_is_read(tmp_path):
    """Each segment alone stays below the limit; the run does not."""
    write_corpus(tmp_path, 500)
    first = [f"{file}-{row}" for file in (0, 1) for row in range(0, 500, 25)]
    second = [f"{file}-{row + 1}" for file in (0, 1) for row in range(0, 500, 25)]
    for _ in range(2):
        with pytest.raises(TooManyQuarantined, match=r"expected at most 5 % of the documents read"):
            failing(tmp_path, first, second).run(HERE, quiet=True, max_quarantined=0.05)
    assert failing(tmp_path, first, second).run(HERE, quiet=True, max_quarantined=0.08).quarantined == 80


def test_a_share_behind_an_exchange_is_not_one_of_what_comes_through_it(tmp_path):
    """Of ten documents behind it two fail; of a thousand read that is little."""
    write_corpus(tmp_path, 500)
    stages = [
        JsonlReader(str(tmp_path / "in")),
        KeepsFewIds(),
        Exchange("id", 2),
        FailsOnSomeIds("second", ["0-1", "1-1"]),
        JsonlWriter(str(tmp_path / "out")),
    ]
    result = Pipeline("few", stages=stages).run(HERE, quiet=True, max_quarantined=0.01)
    assert (result.read, result.written, result.quarantined) == (1000, 8, 2)


class KeepsFewIds(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drops all but the first few documents of each file."""

    name = "keeps_few"

    def __init__(self, fewest: int = 5) -> None:
        self.fewest = fewest

    def process(self, task):
        drop = [int(each.partition("-")[2]) >= self.fewest for each in task.column("id").to_pylist()]
        self.context.drop(task, drop, reason="many")
        return task.filter([not each for each in drop])


def test_a_run_without_a_writer_cannot_be_continued(tmp_path):
    write_corpus(tmp_path, 5)
    pipeline = failing(tmp_path, [], [], writer=False)
    run = {"quiet": True, "checkpoint_path": tmp_path / "run"}
    assert sum(task.num_items for task in pipeline.run(HERE, **run)) == 10
    with pytest.raises(ConfigError, match=r"ends in a writer; only such a run can be continued"):
        pipeline.run(HERE, **run)
    assert sum(task.num_items for task in pipeline.run(HERE, fresh=True, **run)) == 10


def kinds(tmp_path):
    """Pipelines into one output, by how many exchanges they have."""
    reader, writer = JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))
    between = [[], [Exchange("id", 2)], [Exchange("id", 2), Exchange("text", 3)]]
    return [Pipeline("kinds", stages=[reader, *exchanges, writer]) for exchanges in between]


def ids(tmp_path):
    return sorted(document["id"] for document in read_documents(tmp_path / "out"))


@pytest.mark.parametrize(("before", "now"), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
def test_a_run_with_other_exchanges_is_refused_or_replaced(tmp_path, before, now):
    write_corpus(tmp_path, 5)
    pipelines = kinds(tmp_path)
    pipelines[before].run(HERE, quiet=True)
    files = contents(tmp_path / "out")
    with pytest.raises(ResumeRefused, match="start over with fresh=True"):
        pipelines[now].run(HERE, quiet=True)
    assert contents(tmp_path / "out") == files
    assert pipelines[before].run(HERE, quiet=True).already_finished

    again = pipelines[now].run(HERE, quiet=True, fresh=True)
    assert again.written == 10
    assert not any("exchange-" in message for message in again.messages)
    assert len(ids(tmp_path)) == len(set(ids(tmp_path))) == 10
    assert pipelines[now].run(HERE, quiet=True).already_finished
    with pytest.raises(ResumeRefused):
        pipelines[before].run(HERE, quiet=True)


@pytest.mark.parametrize("kind", [0, 1])
def test_starting_over_leaves_what_only_looks_like_a_part_of_a_run(tmp_path, kind):
    write_corpus(tmp_path, 5)
    mine = [tmp_path / "run" / name / "a.jsonl" for name in ("exchange-rates", "segment-7", "segment-old")]
    for path in mine:
        write_documents(path, [{"id": "mine"}])
    kinds(tmp_path)[kind].run(HERE, quiet=True, checkpoint_path=tmp_path / "run", fresh=True)

    assert all(list(path.parent.iterdir()) == [path] for path in mine)


def test_rejects_of_two_segments_never_have_one_name(tmp_path):
    """An input may be called like a partition of an exchange."""
    write_documents(tmp_path / "in" / "partition-00000.jsonl", [{"id": f"0-{row}", "text": "x"} for row in range(8)])
    stages = [KeepsFewIds(), Exchange("id", 1), KeepsFewIds(fewest=3).with_(name="keeps_fewer")]
    ends = [JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))]
    pipeline = Pipeline("rejects", stages=[ends[0], *stages, ends[1]])
    result = pipeline.run(HERE, quiet=True, rejects_path=str(tmp_path / "rejects"))

    assert (result.written, result.dropped_total) == (3, 5)
    assert len(read_documents(tmp_path / "rejects")) == 5
    assert len(set(result.rejects_files)) == 2
    assert result.messages == []  # not that somebody else's files were there


@pytest.mark.parametrize(("writer", "told"), [(True, "Run the same command again"), (False, "Only a pipeline that")])
def test_a_run_nobody_can_continue_does_not_say_otherwise_when_it_is_stopped(tmp_path, writer, told):
    write_corpus(tmp_path, 5)
    stages = failing(tmp_path, [], [], writer=writer).stages
    with pytest.raises(Interrupted, match=told):
        Pipeline("stopped", stages=[stages[0], InterruptsItsRun(), *stages[1:]]).run(HERE, quiet=True)


class InterruptsItsRun(ProcessingStage[DocumentBatch, DocumentBatch]):
    """As Ctrl-C does."""

    name = "interrupts"

    def process(self, task):
        signal.raise_signal(signal.SIGINT)
        return task


def test_an_output_may_be_called_as_the_run_directory_is_while_there_is_none(tmp_path):
    write_corpus(tmp_path, 5)
    out = tmp_path / "RUN_DIR" / "out"
    stages = [JsonlReader(str(tmp_path / "in")), Exchange("id", 2), JsonlWriter(str(out))]
    run = Run(Pipeline("p", stages=stages).plan(HERE), RunOptions())
    run.close()

    assert [segment.output_directories for segment in run.segments] == [
        (f"{out}/.gristmill/exchange-1",),
        (str(out),),
    ]
