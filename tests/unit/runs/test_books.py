"""The books add up partitions, in their order."""

import pyarrow as pa

from gristmill.engine.ledger import CommitRecord
from gristmill.metrics.stage_counts import StageCounts
from gristmill.pipeline.segments import compile_chain
from gristmill.runs.books import Books
from gristmill.stages.text.filters import Score
from gristmill.tasks import DocumentBatch, StagedFile


def record(root, *, files=(), **counts):
    return CommitRecord(root, f"p{root}", files, (), (("score_len", StageCounts(**counts)),), ())


def file(name):
    return StagedFile(f"{name}.tmp", name, 1, 1, "")


def test_a_result_is_in_the_order_of_the_partitions_whatever_the_order_of_commits():
    batch = DocumentBatch("b", pa.table({"text": ["a"]}))
    plan = compile_chain("p", [Score(len, "n")], [batch, batch])
    books = Books(plan, {})
    books.add(record(1, files=(file("b"),), read=2))
    books.add(record(0, files=(file("a"),), read=3))
    result = books.result(run_dir=None, rejects_path=None)

    assert result.output_files == ["a", "b"]
    assert result.read == 5
    assert books.input_bytes_done == 2 * batch.nbytes > 0
