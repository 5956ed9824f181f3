"""An exchange keeps every promise of a run: the books, the bytes, resuming, and one run to whoever looks."""

import json
from collections import Counter

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.exchange import Aggregate, Exchange, Shuffle
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.io.reader.jsonl import JsonlReaderStage
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
SITES = 11


@pytest.fixture
def corpus(tmp_path):
    for file in range(5):
        documents = [
            {"id": f"{file}-{row}", "site": (file + row) % SITES, "text": "word " * row, "odd": 1.50}
            for row in range(40)
        ]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    return tmp_path / "in"


def grouped(corpus, out, *, num_partitions=4, min_words=3):
    return Pipeline(
        "group",
        stages=[
            JsonlReader(str(corpus)),
            ScoreFilter(WordCountFilter(min_words=min_words)),
            Exchange("site", num_partitions),
            JsonlWriter(str(out)),
        ],
    )


def test_rows_of_one_key_meet_in_one_partition(corpus, tmp_path):
    grouped(corpus, tmp_path / "out").run(HERE)

    places = {}
    for file in (tmp_path / "out").glob("*.jsonl"):
        for line in file.read_text().splitlines():
            places.setdefault(json.loads(line)["site"], set()).add(file.name)
    assert len(places) == SITES
    assert {len(files) for files in places.values()} == {1}


def test_rows_arrive_in_the_order_of_their_sources_and_with_the_bytes_they_were_read_with(corpus, tmp_path):
    grouped(corpus, tmp_path / "out", num_partitions=1, min_words=0).run(HERE)

    before = b"".join(file.read_bytes() for file in sorted(corpus.iterdir()))
    assert (tmp_path / "out" / "partition-00000.jsonl").read_bytes() == before


def test_the_books_are_those_of_one_run(corpus, tmp_path):
    result = grouped(corpus, tmp_path / "out").run(HERE)

    assert (result.read, result.written, result.dropped_total, result.created) == (200, 185, 15, 0)
    assert result.balanced
    assert list(result.counts) == ["jsonl_reader", "word_count", "exchange", "exchange_read", "jsonl_writer"]
    assert result.stage_metrics["exchange_read"]["documents_out"] == 185


@pytest.mark.slow
def test_the_bytes_are_the_same_with_any_number_of_workers(corpus, tmp_path):
    for workers in (0, 1, 3):
        grouped(corpus, tmp_path / f"out{workers}").run(LocalExecutor(num_workers=workers))

    first = contents(tmp_path / "out0")
    assert first
    assert contents(tmp_path / "out1") == first
    assert contents(tmp_path / "out3") == first


def test_a_finished_run_says_so_and_changes_nothing(corpus, tmp_path):
    run = {"executor": HERE, "checkpoint_path": tmp_path / "run"}
    first = grouped(corpus, tmp_path / "out").run(**run)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = grouped(corpus, tmp_path / "out").run(**run)

    assert again.already_finished
    assert (again.read, again.written, again.dropped) == (first.read, first.written, first.dropped)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


def test_the_rows_in_between_are_removed_at_the_end(corpus, tmp_path):
    grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run")

    assert not list((tmp_path / "run").glob("exchange-*"))
    assert json.loads((tmp_path / "run" / "report.json").read_text())["written"] == 185


def test_an_output_that_vanished_is_made_again(corpus, tmp_path):
    grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run")
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "partition-00002.jsonl").unlink()
    grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run")

    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("change", [{"num_partitions": 5}, {"min_words": 4}])
def test_a_changed_pipeline_is_refused(corpus, tmp_path, change):
    grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run")
    with pytest.raises(ResumeRefused):
        grouped(corpus, tmp_path / "out", **change).run(HERE, checkpoint_path=tmp_path / "run")


def test_starting_over_leaves_nothing_of_the_earlier_run(corpus, tmp_path):
    grouped(corpus, tmp_path / "out", num_partitions=6).run(HERE, checkpoint_path=tmp_path / "run")
    result = grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run", fresh=True)

    assert sorted(contents(tmp_path / "out")) == [f"partition-{i:05d}.jsonl" for i in range(4)]
    assert not result.resumed


def test_whoever_watches_sees_one_run(corpus, tmp_path):
    seen = []
    grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=tmp_path / "run", observer=seen.append)

    last = seen[-1]
    assert last.state == "finished"
    assert {snapshot.state for snapshot in seen[:-1]} <= {"running"}
    assert (last.read, last.written, last.dropped) == (200, 185, 15)
    assert last.partitions_done == last.partitions_total == 9
    assert json.loads((tmp_path / "run" / "status.json").read_text())["state"] == "finished"


def test_two_exchanges_in_one_pipeline(corpus, tmp_path):
    counted = Aggregate("site", {"pages": ("id", "count")}, num_partitions=3)
    again = Aggregate("pages", {"sites": ("site", "count")}, num_partitions=2)
    result = Pipeline("twice", stages=[JsonlReader(str(corpus)), counted, again, JsonlWriter(str(tmp_path / "o"))]).run(
        HERE
    )

    pages = Counter((file + row) % SITES for file in range(5) for row in range(40))
    expected = Counter(pages.values())
    assert {row["pages"]: row["sites"] for row in read_documents(tmp_path / "o")} == expected
    assert result.balanced


def test_aggregation_computes_over_the_whole_dataset(corpus, tmp_path):
    wanted = {"pages": ("id", "count"), "first": ("id", "first"), "odd": ("odd", "sum")}
    stages = [JsonlReader(str(corpus)), Aggregate("site", wanted, num_partitions=3)]
    tasks = Pipeline("aggregate", stages=stages).run(HERE)

    rows = [row for task in tasks for row in task.to_pyarrow().to_pylist()]
    ids = {}
    for file in range(5):
        for row in range(40):
            ids.setdefault((file + row) % SITES, []).append(f"{file}-{row}")
    assert {row["site"]: (row["pages"], row["first"], row["odd"]) for row in rows} == {
        site: (len(own), own[0], 1.5 * len(own)) for site, own in ids.items()
    }


def test_a_shuffle_keeps_every_row_and_mixes_the_files(corpus, tmp_path):
    for number, seed in enumerate((7, 7, 8)):
        stages = [JsonlReader(str(corpus)), Shuffle(seed, num_partitions=2), JsonlWriter(str(tmp_path / f"o{number}"))]
        Pipeline("shuffle", stages=stages).run(HERE)
    first, same, other = ([row["id"] for row in read_documents(tmp_path / f"o{number}")] for number in range(3))

    original = [row["id"] for row in read_documents(corpus)]
    assert sorted(first) == sorted(original)
    assert first == same
    assert first not in (other, original)
    assert len({row.partition("-")[0] for row in first[:20]}) == 5


def test_a_stage_behind_an_exchange_gets_a_whole_partition(corpus):
    @processing_stage(name="count_sites")
    def count_sites(task: DocumentBatch) -> DocumentBatch:
        return DocumentBatch("sites", pa.table({"sites": [len(set(task.column("site").to_pylist()))]}))

    tasks = Pipeline("p", stages=[JsonlReader(str(corpus)), Exchange("site", 3), count_sites]).run(HERE)
    assert sum(task.column("sites")[0].as_py() for task in tasks) == SITES


def test_a_misspelt_key_or_column_behind_the_exchange_is_found_before_anything_runs(corpus, tmp_path):
    reader = JsonlReader(str(corpus), fields=["id", "site", "text"])
    with pytest.raises(ConfigError, match=r"expected a column 'sit' .* did you mean 'site'"):
        Pipeline("p", stages=[reader, Exchange("sit"), JsonlWriter(str(tmp_path / "o"))]).plan()
    late = ScoreFilter(WordCountFilter(), text_field="txt")
    with pytest.raises(ConfigError, match=r"expected a column 'txt'"):
        Pipeline("p", stages=[reader, Exchange("site"), late, JsonlWriter(str(tmp_path / "o"))]).plan()


def test_the_plan_shows_what_waits_for_what(corpus, tmp_path):
    text = grouped(corpus, tmp_path / "out").plan().describe()
    before, _, behind = text.partition("then, when all of that is done:")
    assert "word_count" in before
    assert "4 source partitions" in behind


def test_the_number_of_partitions_follows_from_the_input(corpus):
    assert Exchange("site").partition_count(0) == 1
    assert Exchange("site").partition_count(65 * 1024**2) == 2
    with pytest.raises(ConfigError, match="expected num_partitions from 1 to 4096; got 0"):
        Exchange("site", 0)


def test_an_exchange_needs_something_to_exchange(tmp_path):
    with pytest.raises(ConfigError, match="expected a reader before 'exchange'"):
        Pipeline("p", stages=[Exchange("site")]).plan()


def _spied(monkeypatch, owner, name):
    """Count the calls of a method, which does what it always does."""
    calls, real = [], getattr(owner, name)

    def noted(*given, **named):
        calls.append(given[1:])
        return real(*given, **named)

    monkeypatch.setattr(owner, name, noted)
    return calls


@pytest.mark.parametrize("exchanges", [0, 1, 2])
def test_a_run_lists_its_input_and_looks_into_it_once(corpus, tmp_path, monkeypatch, exchanges):
    listings = _spied(monkeypatch, FilePartitioningStage, "_files")
    samples = _spied(monkeypatch, JsonlReaderStage, "columns_of")
    exchange = [Exchange("site", 2), Exchange("id", 3)][:exchanges]
    stages = [JsonlReader(str(corpus)), *exchange, JsonlWriter(str(tmp_path / "out"))]

    assert Pipeline("once", stages=stages).run(HERE).written == 200
    assert (len(listings), len(samples)) == (1, 1)


def test_the_plan_that_was_checked_is_the_plan_that_runs(corpus, tmp_path):
    """A file that comes between the two would be in the books and not in what was checked, or the other way round."""
    late = corpus / "late.jsonl"

    class AddsAFile(LocalExecutor):
        def kept_ready(self):
            write_documents(late, [{"id": "late", "site": 0, "text": "word"}])
            return super().kept_ready()

    result = grouped(corpus, tmp_path / "out", min_words=0).run(AddsAFile(num_workers=0))

    assert late.exists()
    assert result.read == result.written == 200


def test_an_exchange_in_the_directory_that_is_read_is_refused(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"exchange-1'?: expected one outside of the input"):
        grouped(corpus, tmp_path / "out").run(HERE, checkpoint_path=corpus / "run")
    assert not (corpus / "run").exists()


def test_the_working_directory_may_be_what_is_read(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(corpus)
    assert grouped(".", tmp_path / "out", min_words=0).run(HERE).written == 200
