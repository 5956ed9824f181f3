"""What is written as CSV is read again as it was, whatever is in it; files end where they are told to."""

import csv
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import texts

from gristmill.errors import ConfigError
from gristmill.stages.text.io import CsvReader, CsvWriter
from gristmill.tasks import DocumentBatch

HOSTILE = [
    "",
    '"',
    '""',
    ",",
    "\n",
    "\r",
    "\r\n",
    "a\rb",
    " a ",
    "\ufeff",
    "\ufeffa",
    "\x00",
    "=1+1",
    "'",
    "\u2028",
    "é𝄞",
]
headers = st.lists(texts.filter(lambda name: name.strip()), min_size=1, max_size=3, unique=True)


def batch_of(columns):
    batch = DocumentBatch("d", pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    batch.task_id = "part-0"
    return batch


def written(directory, batch, **options):
    return [Path(path) for path in CsvWriter(str(directory), **options).process(batch).data]


def read(directory, **options):
    listing, reading = CsvReader(str(directory), **options).decompose()
    batches = [reading.process(task) for task in listing.partitions()]
    assert not reading.context.quarantined
    return [row for batch in batches for row in batch.to_pyarrow().to_pylist()]


@given(headers, st.data())
def test_every_text_and_every_name_is_read_again_as_it_was(names, data):
    cells = texts | st.sampled_from(HOSTILE)
    rows = data.draw(st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), min_size=1, max_size=5))
    columns = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as directory:
        written(directory, batch_of(columns))
        assert read(directory) == [dict(zip(names, row, strict=True)) for row in rows]


def test_other_tools_read_it_too(tmp_path):
    [file] = written(tmp_path, batch_of({"id": [str(n) for n in range(len(HOSTILE))], "text": HOSTILE}))
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))

    assert rows[0] == ["id", "text"]
    assert [row[1] for row in rows[1:]] == HOSTILE


def test_quotes_are_where_they_are_needed(tmp_path):
    [file] = written(tmp_path, batch_of({"id": ["1", "2"], "text": ["plain text", 'said "no", then left\n']}))

    assert file.read_bytes() == b'id,text\n1,plain text\n2,"said ""no"", then left\n"\n'


@pytest.mark.parametrize("value", ["", None])
def test_a_row_without_anything_in_it_is_still_a_row(tmp_path, value):
    [file] = written(tmp_path, batch_of({"text": ["a", value, "b"]}))

    assert file.read_bytes() == b'text\na\n""\nb\n'
    assert read(tmp_path) == [{"text": "a"}, {"text": ""}, {"text": "b"}]


def test_what_is_not_a_text_is_written_as_in_json(tmp_path):
    table = pa.table(
        {
            "n": [1, None, 12345678901234567],
            "x": [1.5, -0.25, None],
            "flag": [True, False, None],
            "tags": [["a,b", "c"], [], None],
            "who": [{"name": 'a "b"'}, None, {"name": None}],
            "day": pa.array([0, 1, None], pa.date32()),
        }
    )
    batch = DocumentBatch("d", table)
    batch.task_id = "part-0"
    written(tmp_path, batch)
    rows = read(tmp_path)

    assert [row["n"] for row in rows] == ["1", "", "12345678901234567"]
    assert [row["x"] for row in rows] == ["1.5", "-0.25", ""]
    assert [row["flag"] for row in rows] == ["true", "false", ""]
    assert [json.loads(row["tags"] or "null") for row in rows] == [["a,b", "c"], [], None]
    assert [json.loads(row["who"] or "null") for row in rows] == [{"name": 'a "b"'}, None, {"name": None}]
    assert [row["day"] for row in rows] == ["1970-01-01", "1970-01-02", ""]


@pytest.mark.parametrize(("delimiter", "quote"), [("\t", '"'), (";", "'"), ("|", '"'), ("]", "^")])
def test_another_delimiter_and_another_quote(tmp_path, delimiter, quote):
    options = {"delimiter": delimiter, "quote_char": quote}
    values = [f"a{delimiter}b", f"{quote}c{quote}", 'plain, "too"']
    [file] = written(tmp_path, batch_of({"id": ["1", "2", "3"], "text": values}), write_kwargs=options)

    assert file.read_text().splitlines()[0] == f"id{delimiter}text"
    assert [row["text"] for row in read(tmp_path, read_kwargs=options)] == values


def test_files_end_where_they_are_told_to_and_each_has_a_header(tmp_path):
    files = written(
        tmp_path, batch_of({"id": ["1", "2", "3", "4"], "text": ["aaaa", "bb\nbb", "c" * 50, "d"]}), max_file_bytes=24
    )

    assert [file.name for file in files] == ["part-0.0000.csv", "part-0.0001.csv", "part-0.0002.csv", "part-0.0003.csv"]
    assert all(file.read_text().startswith("id,text\n") for file in files)
    assert [len(file.read_bytes()) <= 24 for file in files] == [True, True, False, True]
    assert [row["id"] for row in read(tmp_path)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("options", [{"delimiter": "::"}, {"quote_char": "\n"}, {"delimiter": '"'}, {"delimeter": ";"}])
def test_a_mistake_is_named_when_the_writer_is_made(options):
    with pytest.raises(ConfigError, match="csv_writer: expected"):
        CsvWriter("out", write_kwargs=options)
