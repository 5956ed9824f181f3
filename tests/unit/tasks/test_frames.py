"""Objects that pass through pandas keep their own keys."""

import subprocess
import sys

import pandas as pd
import pytest

from gristmill.tasks import DocumentBatch
from gristmill.tasks.document import relink
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.table import table_from_frame, table_to_frame

LINES = [
    b'{"id": 1, "o": {"a": 1}, "l": [1, "x"]}\n',
    b'{"id": 2, "o": {"b": [1, null]}, "l": []}\n',
    b'{"id": 3}\n',
]


@pytest.mark.parametrize(
    "values",
    [[{"a": 1}, {"b": 2}], [{"a": {"x": 1}}, {"a": {}}], [[{"a": 1}], [{"b": 1}]], [{}, None], [{"a": 1}, "text", 3]],
)
def test_no_object_gets_the_keys_of_another(values):
    frame = pd.DataFrame({"o": pd.Series(values, dtype=object)})

    assert table_to_frame(table_from_frame(frame), len(values))["o"].tolist() == values


def test_objects_of_one_shape_are_a_struct():
    table = table_from_frame(pd.DataFrame({"o": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}))

    assert str(table.schema.field("o").type) == "struct<a: int64, b: string>"


def test_untouched_objects_keep_their_text_when_a_column_is_added():
    import pyarrow as pa

    batch = DocumentBatch.from_lines("d", JsonLines(pa.array(LINES, pa.large_binary())))
    frame = batch.to_pandas()
    frame["n"] = [7, 8, 9]
    changed = relink(batch, DocumentBatch("d", frame))
    written = b"".join(bytes(chunk) for chunk in encode_lines(changed)).splitlines()

    assert [line.rpartition(b',"n":')[0] + b"}" for line in written] == [line.rstrip() for line in LINES]


LIGHT = """
import sys
import numpy as np
import pyarrow as pa
from gristmill.tasks import DocumentBatch
numbers = pa.Array.from_buffers(pa.int64(), 3, [None, pa.py_buffer(np.array([5, 6, 7]))])
batch = DocumentBatch("d", pa.Table.from_arrays([numbers], names=["n"]))
print(batch.filter([True, False, True]).take([1]).column("n").to_pylist(), "pandas" in sys.modules)
"""


@pytest.mark.slow
def test_picking_rows_imports_no_pandas():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)

    assert done.stdout == "[7] False\n"
