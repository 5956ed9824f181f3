"""Shards divide the input without rest and without overlap, and refuse what cannot be divided."""

import json
from pathlib import Path

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.config.shard import Shard
from gristmill.config.shard_books import add_up
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange import Shuffle
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

REPORT = {"read": 5, "created": 0, "written": 3, "quarantined": 1, "dropped": {"filter": {"short": 1}}}


def make_input(directory, files):
    directory.mkdir()
    for number in range(files):
        (directory / f"{number}.jsonl").write_text(json.dumps({"text": "a"}) + "\n")
    return str(directory)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_partition_is_in_exactly_one_shard(tmp_path, count):
    pipeline = Pipeline("p", stages=[JsonlReader(make_input(tmp_path / "in", 5)), JsonlWriter(str(tmp_path / "out"))])
    taken = [name for index in range(count) for name in Shard(index, count).take(pipeline)[0].plan().source_names]

    assert sorted(taken) == sorted(pipeline.plan().source_names)


def test_documents_that_must_meet_cannot_be_sharded(tmp_path):
    stages = [JsonlReader(make_input(tmp_path / "in", 1)), Shuffle(seed=1), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(ConfigError, match="expected a pipeline that takes documents one by one; 'exchange' needs all"):
        Shard(0, 2).take(Pipeline("p", stages=stages))


@pytest.mark.parametrize("text", ["3", "3/3", "-1/3", "a/b", "1/0"])
def test_a_shard_is_an_index_below_a_count(text):
    with pytest.raises(ConfigError, match=r"--shard: expected INDEX/COUNT with 0 ≤ INDEX < COUNT"):
        Shard.parse(text)


def finish(output, index, count, *, seen="same"):
    run_dir = f"{Shard(index, count).output(str(output))}/.gristmill"
    Shard.write_down(run_dir, {"input": seen})
    (Path(run_dir) / "report.json").write_text(json.dumps(REPORT))


def test_the_books_of_all_shards_are_added_up(tmp_path):
    for index in range(3):
        finish(tmp_path, index, 3)
    books = add_up(str(tmp_path))

    assert books.complete
    assert books.totals == {"read": 15, "created": 0, "written": 9, "quarantined": 3, "dropped": 3}


class MeasuresShards(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Counts characters and observes their number in each document."""

    name = "measures_shards"

    def process(self, task):
        lengths = [len(text) for text in task.column("text").to_pylist()]
        self.context.count("characters", sum(lengths))
        self.context.observe("length", lengths)
        return task


def measured(tmp_path, output, shard=None):
    """Measure the input, or a shard of it."""
    out = str(output) if shard is None else shard.output(str(output))
    stages = [JsonlReader(str(tmp_path / "in")), MeasuresShards(), JsonlWriter(out)]
    pipeline = Pipeline("p", stages=stages)
    if shard is not None:
        pipeline, _ = shard.take(pipeline)
        shard.write_down(f"{out}/.gristmill", {"input": "same"})
    return pipeline.run(LocalExecutor(num_workers=0), quiet=True)


def test_what_stages_count_and_observe_is_added_up_as_if_there_were_no_shards(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(7):
        lines = [json.dumps({"text": "x" * (10 * number + n)}) for n in range(9)]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    whole = measured(tmp_path, tmp_path / "whole").to_json()
    for index in range(3):
        measured(tmp_path, tmp_path / "parts", Shard(index, 3))
    books = add_up(str(tmp_path / "parts"))

    assert books.complete
    assert (books.metrics, books.observed) == (whole["metrics"], whole["observed"])
    assert books.observed["measures_shards"]["length"]["values"] == 63
    assert books.to_json()["metrics"] == {"measures_shards": {"characters": sum(range(9)) * 7 + 90 * sum(range(7))}}


def test_a_report_whose_tallies_are_damaged_counts_for_nothing(tmp_path):
    for index in range(2):
        finish(tmp_path, index, 2)
    report = tmp_path / "shard-00001-of-00002/.gristmill/report.json"
    report.write_text(json.dumps(REPORT | {"metrics": {"a": {"n": 1}}, "tallies": {"a": {"b": "c"}}}))
    books = add_up(str(tmp_path))

    assert books.unfinished == {1: "damaged: run it again"}
    assert (books.totals["read"], books.metrics) == (5, {})


def test_a_shard_that_never_ran_is_named(tmp_path):
    finish(tmp_path, 0, 3)
    finish(tmp_path, 2, 3)
    books = add_up(str(tmp_path))

    assert not books.complete
    assert books.unfinished == {1: "not started"}


def test_shards_of_different_inputs_are_not_added_up(tmp_path):
    finish(tmp_path, 0, 2)
    finish(tmp_path, 1, 2, seen="other")

    with pytest.raises(ConfigError, match="to have seen the same input; it changed between them"):
        add_up(str(tmp_path))


def test_a_directory_without_shards_is_no_sharded_run(tmp_path):
    with pytest.raises(ConfigError, match="expected the output directory of one sharded run; got no shard"):
        add_up(str(tmp_path))


@pytest.mark.parametrize("name", ["report.json", "status.json", "shard.json"])
def test_a_shard_whose_files_are_damaged_is_to_be_run_again(tmp_path, name):
    finish(tmp_path, 0, 2)
    finish(tmp_path, 1, 2)
    run_dir = tmp_path / "shard-00001-of-00002" / ".gristmill"
    if name == "status.json":
        (run_dir / "report.json").unlink()
    (run_dir / name).write_bytes(b'{"read": "\xff')

    assert add_up(str(tmp_path)).unfinished == {1: "damaged: run it again"}
