"""Documents that cannot be written down, and stages that fail late, cost what is bad and nothing else; the run ends."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import StageBroken
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import CsvReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

FAR_FUTURE = 10**15  # milliseconds; Python's dates end with the year 9999


class GivesEachRow(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Streams documents one by one; at 5 it raises, at 7 it takes its process down."""

    name = "gives_each_row"

    def process(self, task):
        for row, n in enumerate(task.column("n").to_pylist()):
            if n == 5:
                raise ValueError("five")
            if n == 7:
                os._exit(1)
            yield task.slice(row, 1)


class Fails(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "fails"

    def process(self, task):
        raise ValueError("always")


class Ends(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends its process on any batch, on an empty one too."""

    name = "ends"

    def process(self, task):
        os._exit(1)


def records(result):
    return [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_date_python_cannot_hold_costs_one_document(tmp_path, workers):
    dates = pa.array([0, FAR_FUTURE, 1], pa.timestamp("ms"))
    pq.write_table(pa.table({"id": ["a", "b", "c"], "at": dates}), tmp_path / "in.parquet")
    pipeline = Pipeline("far", stages=[ParquetReader(str(tmp_path / "in.parquet")), JsonlWriter(str(tmp_path / "out"))])

    result = pipeline.run(LocalExecutor(num_workers=workers))

    assert (result.read, result.written, result.quarantined) == (3, 2, 1)
    assert [(record["document_id"], record["kind"]) for record in records(result)] == [("b", "OverflowError")]


def test_a_rejected_document_that_cannot_be_written_leaves_the_reason(tmp_path):
    dates = pa.array([0, FAR_FUTURE], pa.timestamp("ms"))
    pq.write_table(pa.table({"text": ["a", "b"], "at": dates}), tmp_path / "in.parquet")
    stages = [ParquetReader(str(tmp_path / "in.parquet")), ScoreFilter(WordCountFilter(min_words=5))]

    result = Pipeline("far", stages=stages).run(LocalExecutor(num_workers=0), rejects_path=tmp_path / "rejects")

    [file] = (tmp_path / "rejects").glob("*.jsonl")
    rejects = [json.loads(line) for line in file.read_text().splitlines()]
    assert result.dropped == {"word_count": {"word_count": 2}}
    assert [(r.get("text"), r["reject_reason"]) for r in rejects] == [("a", "word_count"), (None, "word_count")]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_header_that_names_a_column_twice_is_refused_with_its_name(tmp_path, workers):
    (tmp_path / "in.csv").write_text("id,id\n1,2\n3,4\n")
    pipeline = Pipeline("twice", stages=[CsvReader(str(tmp_path / "in.csv")), JsonlWriter(str(tmp_path / "out"))])

    with pytest.raises(StageBroken, match=r"csv_reader: no document has passed it; 1 part of files failed") as stopped:
        pipeline.run(LocalExecutor(num_workers=workers))

    assert "expected column names to differ; got 'id' 2 times" in str(stopped.value)


def test_documents_that_all_fail_stop_the_run_and_are_not_committed(tmp_path):
    (tmp_path / "in.csv").write_text("n\n5\n5\n5\n")
    stages = [CsvReader(str(tmp_path / "in.csv")), Fails(), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(StageBroken, match=r"fails: no document has passed it; 3 documents failed\n  3 × ValueError"):
        Pipeline("all", stages=stages).run(LocalExecutor(num_workers=0))

    assert not (tmp_path / "out/.gristmill/ledger.jsonl").read_text()


def test_a_stage_that_ends_its_process_on_everything_costs_every_document_and_no_more(tmp_path):
    (tmp_path / "in.csv").write_text("n\n1\n2\n")
    stages = [CsvReader(str(tmp_path / "in.csv")), Ends(), JsonlWriter(str(tmp_path / "out"))]

    with pytest.raises(StageBroken, match="ends: no document has passed it; 2 documents failed\n  2 × WorkerLost"):
        Pipeline("ends", stages=stages).run(LocalExecutor(num_workers=1))


@pytest.mark.parametrize(("workers", "numbers"), [(0, [1, 5, 2, 5, 3]), (2, [1, 5, 2, 7, 3])])
def test_a_stage_that_streams_loses_no_document_but_the_bad_ones(tmp_path, workers, numbers):
    pq.write_table(pa.table({"n": numbers}), tmp_path / "in.parquet")
    stages = [ParquetReader(str(tmp_path / "in.parquet")), GivesEachRow(), JsonlWriter(str(tmp_path / "out"))]

    result = Pipeline("streams", stages=stages).run(LocalExecutor(num_workers=workers))

    assert (result.read, result.created, result.written, result.quarantined) == (5, 0, 3, 2)
    assert [Path(file).read_text() for file in result.output_files] == [f'{{"n":{n}}}\n' for n in (1, 2, 3)]
    assert [record["document"] for record in records(result)] == [f'{{"n":{numbers[row]}}}' for row in (1, 3)]
