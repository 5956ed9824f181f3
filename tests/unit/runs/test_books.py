"""The books add up partitions, in their order."""

import tracemalloc

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engine.test_ledger import records

from gristmill.metrics.snapshot import StageCounts
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.books import Books, CommittedRecords
from gristmill.runs.ledger import CommitRecord
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


@given(st.lists(records.map(lambda made: made._replace(root=made.root % 7)), max_size=12))
def test_committed_records_are_those_that_were_entered(entered):
    """The last word on each partition, in the order of partitions, without counts and under the plan's name."""
    made = CommittedRecords([f"p{root}" for root in range(7)])
    for one in entered:
        made.add(one)
    last = {one.root: one._replace(name=f"p{one.root}", counts=()) for one in entered}

    assert list(made.items()) == sorted(last.items())
    assert len(made) == len(last)
    assert [root in made for root in (*range(-1, 8), "a")] == [root in last for root in range(-1, 9)]


def test_a_committed_partition_takes_little_memory():
    names = [f"0001__{root:07d}" for root in range(5_000)]
    made = CommittedRecords(names)
    tracemalloc.start()
    for root, name in enumerate(names):
        temporary, final = f"/some/out/.gristmill/tmp/5a1b/{name}.jsonl.0", f"/some/out/{name}.jsonl"
        side = StagedFile(f"/some/rejects/.tmp/5a1b/{name}", f"/some/rejects/{name}", 10, 1, f"xxh3:{root:032x}")
        done = StagedFile(temporary, final, 100, 2, f"xxh3:{root:032x}")
        made.add(CommitRecord(root, name, (done,), (side,), (), ()))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert size / len(names) < 250  # two names of each file and its checksum, twice: 1.7 kB as objects


def test_a_partition_with_nothing_to_its_name_is_committed_all_the_same():
    committed = CommittedRecords(["a", "b", "c"])
    committed.add(CommitRecord(1, "b", (), (), (), ()))

    assert (list(committed), len(committed), 0 in committed, 1 in committed) == ([1], 1, False, True)
    assert committed[1] == CommitRecord(1, "b", (), (), (), ())
    assert not committed.has_files
    committed.add(CommitRecord(1, "b", (StagedFile("t/x", "o/x", 1, 1, "c"),), (), (), ()))
    assert (len(committed), committed.has_files, committed[1].files[0].final) == (1, True, "o/x")
