"""What leaves sideways is written down, whatever the code of its batch does."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.byte_batch import ByteBatch

from gristmill.engine.commands import Care
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.books import read_errors
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined, StageContext
from gristmill.tasks import DocumentBatch, ItemRecord
from gristmill.worker.call_books import SideFiles
from gristmill.worker.group_runner import GroupRunner, Job, RunSettings


class Unshowable(ByteBatch):
    """Cannot tell what it holds."""

    def item(self, row):
        raise RuntimeError("the header is cut")


class Unreasonable(ByteBatch):
    """Shows what is not bytes."""

    def item(self, row):
        return ItemRecord(7, payload=["not", "bytes"])


class Indivisible(ByteBatch):
    """Cannot be taken apart, whatever it says."""

    def take(self, rows):
        raise RuntimeError("no parts")


class Untakeable(ByteBatch):
    """Cannot take one of its items."""

    def take(self, rows):
        if 1 in rows and len(rows) == 1:
            raise RuntimeError("item 1 is gone")
        return super().take(rows)


class RaisesForPoison(ProcessingStage[ByteBatch, ByteBatch]):
    name = "raises_for_poison"

    def process(self, task):
        if any(bytes(task.payload(row)) == b"poison" for row in range(task.num_items)):
            raise ValueError("poison")
        return task


class DropsAllItems(ProcessingStage[ByteBatch, ByteBatch]):
    name = "drops_all_items"

    def process(self, task):
        values = [np.float32(0.5), math.nan, 7][: task.num_items]
        self.context.drop(task, [True] * task.num_items, reason="all", values=values)
        return task.filter([False] * task.num_items)


def run(tmp_path, stage, task, *, care=Care.ISOLATE):
    """Run one task; return what it gave, and the records with their payloads."""
    settings = RunSettings(session="s", rejects_path=str(tmp_path / "r"), quarantine_path=str(tmp_path / "q"))
    for directory in ("r", "q"):
        (tmp_path / directory / ".gristmill/tmp/s").mkdir(parents=True)
    plan = compile_chain("test", [stage], [task])
    runner = GroupRunner(plan.groups[0], last=True, settings=settings)
    [result] = runner.run([Job("t", task, care)], lambda *_: None)
    files = {file.final: file for file in result.side_files}
    records = [
        json.loads(line)
        for file in files.values()
        if not file.is_payload
        for line in Path(file.temporary).read_text().splitlines()
    ]
    for record in records:
        if "payload" in record:
            [own] = [file for final, file in files.items() if final.endswith(f"/{record['payload']}")]
            record["payload"] = (record["payload"].rpartition(".")[2], Path(own.temporary).read_bytes())
    return result, records


@pytest.mark.parametrize("kind", [Unshowable, Unreasonable])
def test_an_item_that_cannot_be_shown_is_recorded_all_the_same(tmp_path, kind):
    result, [record] = run(tmp_path, RaisesForPoison(), kind.of([b"a", b"poison", b"c"]))
    assert result.counts[0].quarantined == record["num_documents"] == 1
    assert result.counts[0].written == 2
    assert record["document_id"] == "t#1"
    assert f"({kind.__name__}.item raised " in record["document"]
    assert "payload" not in record


def test_a_batch_that_cannot_be_divided_loses_each_item_once(tmp_path):
    result, records = run(tmp_path, RaisesForPoison(), Indivisible.of([b"a", b"poison", b"c"]))
    assert (result.counts[0].quarantined, result.counts[0].written) == (3, 0)
    assert [(record["row"], record["num_documents"], record["kind"]) for record in records] == [
        (row, 1, "RuntimeError") for row in range(3)
    ]


def test_an_item_that_cannot_be_taken_is_the_one_to_blame(tmp_path):
    result, records = run(tmp_path, RaisesForPoison(), Untakeable.of([b"poison", b"b", b"c", b"d"]))
    assert (result.counts[0].written, result.counts[0].quarantined) == (2, 2)
    assert [(record["row"], record["kind"]) for record in records] == [(0, "ValueError"), (1, "RuntimeError")]


@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        ({"id": ["a", None, "c"], "text": ["x", "y", "z"]}, ["a", "t0#1", "c"]),
        ({"id": [7, 8, 9]}, ["7", "8", "9"]),
        ({"text": ["x", "y", "z"]}, ["t0#0", "t0#1", "t0#2"]),
    ],
    ids=["some", "numbers", "none"],
)
def test_a_rejected_document_says_which_it_is_and_where_it_came_from(tmp_path, columns, ids):
    batch = DocumentBatch("d", pa.table(columns))
    batch.task_id = "t0"
    batch._metadata["source_files"] = ["s3://key:secret@bucket/in.jsonl"]
    context = StageContext(keep_rejects=True, session="s", attempt="0")
    context.drop(batch, [True] * 3, reason="all")
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    plan = compile_chain("test", [DropsAllItems()], [batch])
    (staged,) = SideFiles(plan.groups[0], str(tmp_path), None).write(0, "t-0000", "t0", context)
    lines = [json.loads(line) for line in Path(staged.temporary).read_text().splitlines()]

    assert [line["reject_id"] for line in lines] == ids
    assert all("in.jsonl" in line["reject_source"] and "secret" not in line["reject_source"] for line in lines)


def test_values_of_any_kind_are_numbers_in_the_record(tmp_path):
    payloads = [b"\xff\xd8\xff\xe0", b"plain", b"RIFF\x00\x00\x00\x00WAVE"]
    batch = ByteBatch.of(payloads)
    batch.item = lambda row: ItemRecord(f"n{row}", payload=payloads[row])
    context = StageContext(keep_rejects=True, session="s", attempt="0")
    context.drop(batch, [True] * 3, reason="all", values=[np.float32(0.5), math.nan, 7])
    rejected = context.rejects[0].items
    rejected.item = batch.item
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    plan = compile_chain("test", [DropsAllItems()], [batch])
    staged = SideFiles(plan.groups[0], str(tmp_path), None).write(0, "t-0000", "t", context)
    lines = [json.loads(line) for line in Path(staged[0].temporary).read_text().splitlines()]
    assert [line["reject_value"] for line in lines] == [0.5, None, 7]
    assert [line["payload"].rpartition(".")[2] for line in lines] == ["jpg", "bin", "wav"]
    assert [file.num_bytes for file in staged[1:]] == [4, 5, 12]


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.array([1, 2]), "[1, 2]"),
        (np.array([7]), 7),
        ({"b", "a"}, "['a', 'b']"),
        ({"a": {2, 1}}, '{"a": "[1, 2]"}'),
        ({(1, 2): 3}, "(dict that cannot be shown: TypeError)"),
        (10**400, str(10**400)),
        (10**5000, "(int that cannot be shown: ValueError)"),
        (b"x", "b'x'"),
        ("half \udce9", "half \\udce9"),
        ("x" * (2 << 20), "x" * (1 << 20)),
        (Unprintable(), "(Unprintable that cannot be shown: RuntimeError)"),
        (-math.inf, None),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("batch", [ByteBatch.of([b"a"]), DocumentBatch("d", pa.table({"id": ["a"]}))], ids=["B", "D"])
def test_a_value_of_any_kind_can_be_written_down(tmp_path, batch, value, shown):
    context = StageContext(keep_rejects=True, session="s", attempt="0")
    context.drop(batch, [True], reason="all", values=[value])
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    plan = compile_chain("test", [DropsAllItems()], [batch])
    staged = SideFiles(plan.groups[0], str(tmp_path), None).write(0, "t-0000", "t", context)
    assert json.loads(Path(staged[0].temporary).read_text())["reject_value"] == shown


@pytest.mark.parametrize(
    "payload",
    [
        np.zeros((0, 3)),
        np.arange(20)[::2],
        np.asfortranarray(np.arange(20).reshape(4, 5)),
        np.zeros(3, [("a", "i4"), ("b", "f8")]),
        np.float64(1.5),
        memoryview(b"abcdef")[::-2],
        bytearray(b"abc"),
    ],
    ids=["no size", "strided", "fortran", "records", "scalar", "reversed", "bytearray"],
)
def test_the_payload_of_any_buffer_is_its_bytes(tmp_path, payload):
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    context = StageContext(session="s", attempt="0")
    context.quarantine(Quarantined("e", "E", payload=payload, row=np.int64(3)))
    plan = compile_chain("test", [DropsAllItems()], [ByteBatch.of([b"a"])])
    records, kept = SideFiles(plan.groups[0], None, str(tmp_path)).write(0, "t-0000", "t", context)
    assert Path(kept.temporary).read_bytes() == bytes(payload)
    assert json.loads(Path(records.temporary).read_text())["row"] == 3


def test_an_extension_cannot_leave_its_directory(tmp_path):
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    context = StageContext(session="s", attempt="0")
    context.quarantine(Quarantined("e", "E", payload=b"x", extension="../../../etc/passwd"))
    plan = compile_chain("test", [DropsAllItems()], [ByteBatch.of([b"a"])])
    _, payload = SideFiles(plan.groups[0], None, str(tmp_path)).write(0, "t-0000", "t", context)
    assert payload.final == f"{tmp_path}/payloads/t-0000-s00-00000.etcpasswd"


def test_a_payload_that_is_not_bytes_is_refused_where_it_is_given():
    with pytest.raises(TypeError):
        StageContext().quarantine(Quarantined("e", "E", payload="text"))


def test_errors_tell_where_the_payload_is(tmp_path):
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"stage": "s", "error": "e", "kind": "E", "document": "8 bytes", "payload": "payloads/a.jpg"}) + "\n"
    )
    [error] = read_errors([str(tmp_path / "q.jsonl")])
    assert error.example.document == f"8 bytes in {tmp_path}/payloads/a.jpg"
