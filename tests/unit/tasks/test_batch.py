"""What holds for a batch of any kind: it is divided, joined, measured and sent as its author would expect."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
from tests.byte_batch import ByteBatch

from gristmill.errors import StageError
from gristmill.stages.context import StageContext
from gristmill.tasks import Batch, DocumentBatch, FileGroupTask, TableBatch, Task
from gristmill.tasks.batch import chosen, count_true, divided, true_rows
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.serialization import WRITABLE, dump, dumped_size, load, write_into

MASKS = [
    [True, False, True],
    (True, False, True),
    np.array([True, False, True]),
    pa.array([True, False, True]),
    pa.chunked_array([[True], [False, True]]),
]


class Arrays(Batch[list]):
    """A user's batch of arrays that says no more than it must."""

    @property
    def num_items(self):
        return len(self.data)

    def take(self, rows):
        return Arrays(self.dataset_name, [self.data[row] for row in rows])


class Wrong(Arrays):
    """Takes one item too many."""

    def take(self, rows):
        return Wrong(self.dataset_name, [*self.data, *self.data])


class Measured(DocumentBatch):
    """A user's documents, with something beside them."""

    def __init__(self, dataset_name, data):
        super().__init__(dataset_name, data)
        self.means = np.arange(100_000, dtype=np.float64)


def sent(task, *, writable=True):
    parts = dump(task)
    target = bytearray(dumped_size(parts))
    assert write_into(parts, memoryview(target)) == len(target)
    return load(parts[0], memoryview(target) if writable else bytes(target))


@pytest.mark.parametrize("mask", MASKS, ids=["list", "tuple", "numpy", "arrow", "chunked"])
def test_a_mask_may_be_of_any_kind(mask):
    assert (count_true(mask), true_rows(mask), chosen([1, 2, 3], mask)) == (2, [0, 2], [1, 3])
    assert ByteBatch.of([b"a", b"b", b"c"]).filter(mask).names == ["item-0", "item-2"]
    context = StageContext(keep_rejects=True)
    context.drop(ByteBatch.of([b"a", b"b", b"c"]), mask, reason="short", values=np.array([1.5, 2, 3]), threshold="x")
    assert context.dropped == {"short": 2}
    assert (context.rejects[0].items.names, context.rejects[0].values) == (["item-0", "item-2"], (1.5, 3.0))


def test_what_cannot_be_divided_cannot_drop_items():
    with pytest.raises(StageError, match=r"context.drop: expected a Batch.*got FileGroupTask"):
        StageContext().drop(FileGroupTask("d", ["a"]), [True], reason="x")


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(StageError, match="a mask of 2 values; got 3"):
        StageContext().drop(ByteBatch.of([b"a", b"b"]), [True] * 3, reason="x")
    with pytest.raises(StageError, match=r"ByteBatch.filter: expected a mask of 2 values; got 1"):
        ByteBatch.of([b"a", b"b"]).filter([True])


def test_a_piece_has_the_name_and_the_history_of_its_batch():
    batch = ByteBatch.of([b"a", b"b"])
    batch.task_id, batch._metadata = "t", {"source_files": ["x.tar"]}
    piece = divided(batch, [1])
    assert (piece.names, piece.task_id, piece.sources()) == (["item-1"], "t", ["x.tar"])


def test_a_batch_that_takes_other_items_than_it_was_asked_for_is_told():
    with pytest.raises(StageError, match=r"Wrong.take: expected a batch of 1 items; got 4"):
        divided(Wrong("d", [1, 2]), [0])


def test_a_batch_knows_what_it_holds_without_being_told():
    arrays = Arrays("d", [np.zeros(1000), {"left": b"x" * 500, "deep": [bytearray(100)]}, pa.py_buffer(b"y" * 50)])
    assert arrays.nbytes == 8000 + 500 + 100 + 50 + len("d")
    assert ByteBatch.of([b"x" * 1000] * 10).nbytes > 10_000


@pytest.mark.parametrize("writable", [True, False], ids=["mapped", "stored"])
def test_arrays_of_any_task_arrive_as_they_left(writable):
    arrays = [np.arange(10_000, dtype=np.int32).reshape(100, 100), np.zeros(3), np.arange(20_000)[::2], b"z" * 9_000]
    arrays[1].flags.writeable = False
    arrived = sent(Arrays("d", arrays), writable=writable)
    for one, other in zip(arrived.data, arrays, strict=True):
        assert np.array_equal(one, other)
        assert type(one) is type(other)
    arrived.data[0][0, 0] = 7  # a stage may change its array, here as in the process that made it
    assert arrays[0][0, 0] == 0


def test_large_arrays_are_used_where_they_lie():
    parts = dump(Arrays("d", [np.zeros(100_000)]))
    target = bytearray(dumped_size(parts))
    write_into(parts, memoryview(target))
    assert parts[0][:1] == WRITABLE
    arrived = load(parts[0], memoryview(target))
    assert np.shares_memory(arrived.data[0], np.frombuffer(target, np.uint8))
    assert arrived.data[0].ctypes.data % 8 == 0


def test_the_same_bytes_travel_once():
    payload = b"x" * 100_000
    parts = dump(Arrays("d", [payload] * 10))
    assert dumped_size(parts) < 110_000
    assert sent(Arrays("d", [payload] * 10)).data == [payload] * 10


def test_arrow_in_any_task_arrives_and_leaves_behind_what_it_was_cut_from():
    column = pa.array(["x" * 1000] * 10_000)
    cut = [column.slice(5, 2), pa.chunked_array([column]).slice(3, 1), pa.table({"a": column}).slice(1, 1)]
    cut.append(pa.record_batch({"a": column}).slice(0, 1))
    parts = dump(Arrays("d", [*cut, column.slice(0, 9_999)]))
    assert dumped_size(parts) < 10_200_000
    assert dumped_size(dump(Arrays("d", cut))) < 40_000
    for one, other in zip(sent(Arrays("d", cut)).data, cut, strict=True):
        assert one.equals(other)
        assert type(one) is type(other)


def test_a_users_documents_arrive_with_their_class_and_what_they_hold():
    batch = Measured("d", pa.table({"text": ["x" * 100] * 1000}))
    before = pa.total_allocated_bytes()
    for arrived in (sent(batch), sent(batch.take(range(900))), pickle.loads(pickle.dumps(batch))):
        assert type(arrived) is Measured
        assert np.array_equal(arrived.means, batch.means)
        assert arrived.to_pyarrow()["text"][0].as_py() == "x" * 100
    del arrived
    assert pa.total_allocated_bytes() - before < 10_000


def test_a_task_in_memory_it_shares_is_gone_when_the_last_of_it_is():
    """No circle of references may hold a body until the garbage is collected."""
    parts = dump(ByteBatch.of([b"x" * 100_000]))
    target = bytearray(dumped_size(parts))
    write_into(parts, memoryview(target))
    arrived = load(parts[0], memoryview(target))
    with pytest.raises(BufferError):
        target.append(0)
    del arrived
    target.append(0)


# Tables


def test_a_table_holds_columns_of_any_type_and_stays_what_it_is():
    class Pictures(TableBatch):
        """A user's table."""

    data = pa.table({"id": ["a", "b", "c"], "image": [b"\xff\xd8\xff1", b"2", None], "width": [1, 2, 3]})
    pictures = Pictures("d", data)
    for other in (pictures.take([2, 0]), pictures.filter([True, False, True]), pictures.slice(1), copy.copy(pictures)):
        assert type(other) is Pictures
    assert pictures.take([2, 0]).column("id").to_pylist() == ["c", "a"]
    assert Pictures.concat([pictures.slice(2), pictures.slice(0, 1)]).column("width").to_pylist() == [3, 1]
    assert pictures.with_column("n", pa.array([7, 8, 9])).drop_columns(["image", "width"]).get_columns() == ["id", "n"]
    assert pictures.select(["width"]).to_pyarrow().column_names == ["width"]
    with pytest.raises(StageError, match=r"Pictures 'd': expected a column 'imag'.*did you mean 'image'"):
        pictures.column("imag")


def test_a_row_of_a_table_is_shown_with_its_bytes_apart():
    data = pa.table({"id": [5], "image": [b"\xff\xd8\xff1"], "width": [1]})
    batch = TableBatch("d", data, _metadata={"source_files": ["a.tar"]})
    item = batch.item(0)
    assert (item.id, item.source, item.text, bytes(item.payload)) == (
        "5",
        "a.tar",
        '{"id":5,"width":1}',
        b"\xff\xd8\xff1",
    )


def test_a_table_is_no_json():
    batch = TableBatch("d", pa.table({"text": ["a"]}))
    assert batch.json_lines({}) is None
    assert batch.descended_from(DocumentBatch("d", pa.table({"text": ["a"]}))) is batch


# Copies


def test_a_copy_of_documents_does_not_touch_what_it_copies(monkeypatch):
    lines = pa.array([b'{"text":"%d"}\n' % number for number in range(1000)], pa.large_binary())
    batch = DocumentBatch.from_lines("d", JsonLines(lines)).filter([number % 10 > 0 for number in range(1000)])
    monkeypatch.setattr(DocumentBatch, "to_parts", None)  # what a pickle would call
    copied = copy.copy(batch)
    assert copied._pending is batch._pending is not None
    assert batch.filter([True] * 900)._held is batch._held
    assert copied.column("text").to_pylist() == batch.column("text").to_pylist()


def test_a_plain_task_that_says_nothing_is_sent_as_ever():
    class Odd(Task[int]):
        num_items = 1

    assert sent(Odd("d", 5)).data == 5


@pytest.mark.parametrize("kind", [TableBatch, DocumentBatch])
@pytest.mark.parametrize("made", [list, np.array, pa.array, lambda mask: pa.chunked_array([mask])], ids=range(4))
def test_a_mask_is_not_taken_for_positions(kind, made):
    batch = kind("d", pa.table({"id": ["a", "b", "c"]}))
    with pytest.raises(StageError, match=rf"^{kind.__name__}\.take: expected positions .*a mask of 3 values"):
        batch.take(made([True, False, True]))
    assert batch.take(made([2, 0])).column("id").to_pylist() == ["c", "a"]
    assert batch.take([]).num_items == 0


@pytest.mark.parametrize("made", [list, np.array, pa.array], ids=["list", "numpy", "arrow"])
@pytest.mark.parametrize(
    ("mask", "values", "message"),
    [
        ([False] * 3, None, "a mask of 2 values; got 3"),
        ([True], None, "a mask of 2 values; got 1"),
        ([True, False], [1.0], "values for 2 items; got 1"),
        ([False, False], [1.0, 2.0, 3.0], "values for 2 items; got 3"),
    ],
)
def test_what_does_not_fit_the_batch_is_refused_before_it_is_counted(made, mask, values, message):
    for context in (StageContext(), StageContext(keep_rejects=True)):
        with pytest.raises(StageError, match=f"^context.drop: expected {message}$"):
            context.drop(ByteBatch.of([b"a", b"b"]), made(mask), reason="x", values=values and made(values))
        assert (context.dropped, context.dropped_of, context.rejects) == ({}, {}, [])


def test_a_slice_of_no_rows_of_a_large_record_batch_arrives():
    class Holder(ByteBatch):
        """A user's batch with Arrow inside."""

    large = pa.record_batch({"n": pa.array(range(100_000)), "t": pa.array(["x"] * 100_000).dictionary_encode()})
    batch = Holder.of([b"x"])
    batch.rows = large.slice(5, 0)
    assert sent(batch).rows.equals(large.slice(0, 0))
    assert sent(batch).rows.schema == large.schema
