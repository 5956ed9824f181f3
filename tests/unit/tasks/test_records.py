"""Records keep their values on every way they go, and become columns that say exactly what they said."""

import datetime
import json

import numpy as np
import pyarrow as pa
import pytest

from gristmill.errors import StageError
from gristmill.tasks import RecordBatch
from gristmill.tasks.json_lines import is_json
from gristmill.tasks.records import records_table
from gristmill.tasks.serialization import dump, dumped_size, load, write_into

ODD = [
    {"id": "a", "raw": bytes(range(256)) * 100, "n": 1, "when": datetime.date(2024, 1, 1)},
    {"id": "b", "pair": (1, 2), "nested": {"x": [1, None, "y"]}, "big": 2**80, "set": {1}},
    {},
]


def travelled(batch):
    header, body = dump(batch)
    target = bytearray(dumped_size((header, body)))
    write_into((header, body), memoryview(target))
    return load(header, memoryview(target))


def test_values_of_any_type_arrive_as_they_left():
    batch = travelled(RecordBatch("d", ODD))
    assert batch.data == ODD
    assert type(batch.data[1]["pair"]) is tuple


class Own:
    """Of a user's script: pickled by value."""

    def __init__(self, n):
        self.n = n


def test_objects_of_a_users_own_class_arrive():
    Own.__module__ = "__main__"
    assert travelled(RecordBatch("d", [{"own": Own(7)}])).data[0]["own"].n == 7


def test_a_batch_can_be_divided_joined_measured_and_shown():
    batch = RecordBatch("d", ODD)
    batch._metadata["source_files"] = ["x.txt"]
    part = batch.take([2, 0])

    assert part.data == [ODD[2], ODD[0]]
    assert RecordBatch.concat([part, part]).data == part.data * 2
    assert batch.nbytes > 25_600
    item = batch.item(0)
    assert (item.id, item.source, item.payload) == ("a", "x.txt", ODD[0]["raw"])
    assert item.text == '{"id":"a","n":1,"when":"2024-01-01"}'
    assert batch.item(1).text.startswith('{"id":"b","pair":')


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["x", None, "é"], pa.string()),
        ([b"x", None], pa.binary()),
        ([1, None, -5], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([True, False], pa.bool_()),
        ([["a"], [], None], pa.list_(pa.string())),
        ([{"x": 1}, {"x": 2}], pa.struct([("x", pa.int64())])),
        ([None, None], pa.string()),
        ([], pa.string()),
    ],
)
def test_a_column_has_the_type_of_its_values(values, kind):
    table = records_table([{"c": value} for value in values], ["c"])
    assert table.schema.field("c").type == kind
    assert table.column("c").to_pylist() == values


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, "x"], ["1", '"x"']),
        ([2**80, 1], [str(2**80), "1"]),
        ([{"x": 1}, {"y": 2}], ['{"x":1}', '{"y":2}']),
        ([datetime.date(2024, 1, 1)], ['"2024-01-01"']),
        ([(1, "a")], ['[1,"a"]']),
    ],
)
def test_values_that_no_arrow_type_holds_exactly_are_json(values, texts):
    table = records_table([{"c": value} for value in values])
    assert is_json(table.schema.field("c"))
    assert table.column("c").to_pylist() == texts


def test_columns_are_those_declared_and_then_as_they_occur_and_half_a_surrogate_is_replaced():
    table = records_table([{"z": 1}, {"text": "a\ud800", "y": 2}], ["text", "never"])
    assert table.column_names == ["text", "never", "z", "y"]
    assert table.column("text").to_pylist() == [None, "a\ufffd"]


def test_names_that_are_no_text_become_text_and_keep_their_values():
    assert records_table([{5: "five"}, {"5": "too"}]).to_pylist() == [{"5": "five"}, {"5": "too"}]


def test_numbers_of_numpy_stay_numbers_and_sets_have_one_order():
    words = {f"word {number}" for number in range(50)}
    table = records_table([{"n": np.int64(5), "w": words}, {"n": "x", "w": None}])
    assert table.column("n").to_pylist() == ["5", '"x"']
    assert table.column("w").to_pylist() == [json.dumps(sorted(words), separators=(",", ":")), None]


@pytest.mark.parametrize("value", [object(), lambda: 1, (x for x in "ab"), {"x": [object()]}])
def test_a_value_that_is_another_text_in_every_run_is_an_error_that_names_its_column(value):
    with pytest.raises(StageError, match="column 'c': expected values that JSON can hold"):
        records_table([{"c": value}])
