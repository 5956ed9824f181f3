"""Lines with thousands of fields become the same columns as others, some at a time."""

import json
import sys

import pyarrow as pa
import pytest

from gristmill.tasks import DocumentBatch, json_lines
from gristmill.tasks import json_lines as json_text
from gristmill.tasks.json_lines import JsonLines


def lines_of(documents):
    return JsonLines(pa.array([json.dumps(document).encode() + b"\n" for document in documents], pa.large_binary()))


DOCUMENTS = [
    {"a": 1, "b": "x", "odd name\u0000": None},
    {"b": None, "c": [1, {"d": 2}], "a": 2.5},
    {},
    {"a": True, "b": "é", "nan": float("nan"), "odd name\u0000": "y"},
]


@pytest.mark.parametrize("most", [1, 5, 9])
def test_columns_parsed_in_groups_are_those_parsed_together(monkeypatch, most):
    together = DocumentBatch.from_lines("d", lines_of(DOCUMENTS)).drop_columns(["b"]).to_pyarrow()
    monkeypatch.setattr(json_lines, "_MOST_VALUES", most)
    monkeypatch.setattr(json_lines, "_FEW_LINES", 2)
    apart = DocumentBatch.from_lines("d", lines_of(DOCUMENTS)).drop_columns(["b"]).to_pyarrow()
    assert apart.schema.equals(together.schema, check_metadata=True)
    assert str(apart.to_pylist()) == str(together.to_pylist())  # NaN is not equal to itself
    assert lines_of(DOCUMENTS).all_names() == ["a", "b", "odd name\0", "c", "nan"]


def test_thousands_of_columns_do_not_become_objects_all_at_once(monkeypatch):
    monkeypatch.setattr(json_lines, "_MOST_VALUES", 10_000)
    lines = lines_of([{f"column_{n}": row for n in range(1000)} for row in range(60)])
    before, most = sys.getallocatedblocks(), 0

    parse_column_as_ever = json_text.parse_column

    def parse_column(name, texts):
        nonlocal most
        most = max(most, sys.getallocatedblocks())
        return parse_column_as_ever(name, texts)

    monkeypatch.setattr(json_lines, "parse_column", parse_column)
    assert DocumentBatch.from_lines("d", lines).to_pyarrow().num_columns == 1000
    assert most - before < 40_000  # of 60,000 values
