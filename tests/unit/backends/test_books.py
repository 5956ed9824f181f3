"""The books add up partitions, and line numbers count from the beginning of a file however it was split."""

import json

import pyarrow as pa

from gristmill.backends.books import Books, number_lines
from gristmill.engine.ledger import CommitRecord
from gristmill.metrics.stage_counts import StageCounts
from gristmill.pipeline.compile import compile_plan
from gristmill.stages.context import Quarantined, StageContext
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.filters import Score
from gristmill.stages.text.io.reader.jsonl import JsonlReaderStage
from gristmill.tasks import DocumentBatch, StagedFile


def record(root, *, files=(), lines_read=(), **counts):
    return CommitRecord(root, f"p{root}", files, (), (("score_len", StageCounts(**counts)),), lines_read)


def file(name):
    return StagedFile(f"{name}.tmp", name, 1, 1, "")


def quarantine_file(path, entries):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return path


def lines_of(path):
    return [json.loads(line)["line"] for line in path.read_text().splitlines()]


def test_a_result_is_in_the_order_of_the_partitions_whatever_the_order_of_commits():
    batch = DocumentBatch("b", pa.table({"text": ["a"]}))
    plan = compile_plan("p", [Score(len, "n")], [batch, batch])
    books = Books(plan, {})
    books.add(record(1, files=(file("b"),), read=2))
    books.add(record(0, files=(file("a"),), read=3))
    result = books.result(run_dir=None, rejects_path=None)

    assert result.output_files == ["a", "b"]
    assert result.read == 5
    assert books.input_bytes_done == 2 * batch.nbytes > 0


def test_line_numbers_become_those_of_the_file(tmp_path):
    entries = [{"source": "f", "line": 3, "block_start": 0}, {"source": "f", "line": 2, "block_start": 200}]
    path = quarantine_file(tmp_path / "q.jsonl", [*entries, {"source": "g", "line": 1, "block_start": 100}])
    blocks = [record(0, lines_read=(("f", 0, 10), ("f", 100, 5))), record(1, lines_read=(("f", 200, 4), ("g", 100, 9)))]
    number_lines(blocks, [str(path)])

    assert lines_of(path) == [3, 17, 1]


def test_numbering_again_changes_nothing(tmp_path):
    path = quarantine_file(tmp_path / "q.jsonl", [{"source": "f", "line": 2, "block_start": 100}])
    blocks = [record(0, lines_read=(("f", 0, 10), ("f", 100, 5)))]
    number_lines(blocks, [str(path)])
    number_lines(blocks, [str(path)])

    assert lines_of(path) == [12]


def test_what_has_no_line_keeps_none(tmp_path):
    path = quarantine_file(tmp_path / "q.jsonl", [{"source": "f", "line": None, "block_start": 0}])
    number_lines([record(0, lines_read=(("f", 0, 10),))], [str(path)])

    assert lines_of(path) == [None]


def test_a_split_files_bad_lines_are_found_where_an_editor_shows_them(tmp_path):
    """Reader, partitions and books together: cut a file anywhere, and the numbers are those of the whole file."""
    source = tmp_path / "a.jsonl"
    bad = {4, 11, 12, 29}
    source.write_text("".join("{broken\n" if n in bad else f'{{"n": {n}}}\n' for n in range(1, 31)))
    for blocksize in (10, 33, 64, 1000):
        records, found = [], []
        for root, task in enumerate(
            FilePartitioningStage(str(source), blocksize=blocksize, split="lines").partitions()
        ):
            stage = JsonlReaderStage()
            stage.context = context = StageContext()
            stage.process(task)
            lines = tuple((path, start, count) for (path, start), count in context.lines_read.items())
            records.append(record(root, lines_read=lines))
            found += context.quarantined
        path = quarantine_file(tmp_path / "q.jsonl", [entry_of(quarantined) for quarantined in found])
        number_lines(records, [str(path)])

        assert set(lines_of(path)) == bad


def entry_of(quarantined: Quarantined):
    return {"source": quarantined.source, "line": quarantined.line, "block_start": quarantined.block_start}
