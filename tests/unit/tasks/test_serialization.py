"""A task that travelled is the task that left."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from tests.byte_batch import ByteBatch
from tests.strategies import line_lists

from gristmill.tasks import DocumentBatch, EmptyTask, FileGroupTask, FileSlice, StagePerfStats, Task
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.serialization import dump, dumped_size, load, write_into


def travelled(task):
    parts = dump(task)
    target = bytearray(dumped_size(parts))
    assert write_into(parts, memoryview(target)) == len(target)
    return load(parts[0], pa.py_buffer(target))


def batch_of(lines):
    return DocumentBatch.from_lines("d", JsonLines(pa.array(lines, pa.large_binary())))


class Clip(Task[bytes]):
    """A user's task, defined where workers cannot import it by name."""

    num_items = 1


@given(line_lists)
def test_a_batch_arrives_with_its_lines_its_columns_and_its_history(lines):
    for copies in (1, 100):  # a small one is pickled, a large one is mapped
        batch = batch_of(lines * copies).drop_columns(["n"])
        batch.task_id = "t"
        batch.add_stage_perf(StagePerfStats("s", 1.5))
        batch.column("text")
        arrived = travelled(batch)
        assert arrived.lines.values.equals(batch.lines.values)
        assert arrived.parsed_columns() == batch.parsed_columns()
        assert arrived.to_pyarrow().equals(batch.to_pyarrow(), check_metadata=True)
        assert (arrived.task_id, arrived._stage_perf) == ("t", batch._stage_perf)


@pytest.mark.parametrize(
    "task", [EmptyTask(), FileGroupTask("d", ["a"], slices=(FileSlice("a", (0, 5)),)), Clip("d", b"x")]
)
def test_other_tasks_arrive_as_they_were(task):
    assert travelled(task) == task


def test_a_large_batch_is_not_copied_when_it_is_loaded():
    batch = DocumentBatch("d", pa.table({"text": ["x" * 1000] * 100}))
    parts = dump(batch)
    target = bytearray(dumped_size(parts))
    write_into(parts, memoryview(target))
    before = pa.total_allocated_bytes()
    load(parts[0], pa.py_buffer(target))
    assert pa.total_allocated_bytes() - before < 10_000


def test_payloads_of_a_users_batch_lie_beside_the_pickle_and_are_not_copied_when_they_are_loaded():
    """So they travel as fast as documents do; `benchmarks.transport` prints how fast."""
    batch = ByteBatch.of([b"x" * 1000] * 1000)
    parts = dump(batch)
    target = bytearray(dumped_size(parts))
    write_into(parts, memoryview(target))
    before = pa.total_allocated_bytes()

    loaded = load(parts[0], pa.py_buffer(target))

    assert pa.total_allocated_bytes() - before < 10_000
    assert loaded.data.equals(batch.data)
    pickled = parts[1].places[0]
    assert len(parts[0]) + pickled.end - pickled.start < batch.nbytes / 20
    assert len(target) < 1.1 * batch.nbytes


def test_a_slice_travels_without_what_it_was_cut_from():
    batch = batch_of([b'{"text":"%b"}\n' % (b"x" * 1000)] * 1000).slice(5, 2)
    assert len(pickle.dumps(batch)) < 10_000
    assert dumped_size(dump(batch)) < 10_000
    assert pickle.loads(pickle.dumps(batch)).lines.values.equals(batch.lines.values)
