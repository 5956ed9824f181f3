"""A file in another format is named before anything runs; a damaged file in the right one is not."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.io import ArrowReader, CsvReader, JsonlReader, ParquetReader, TextReader

ROWS = [{"id": n, "text": f"some, text {n}", "more": {"a": [n]}} for n in range(300)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
CSV = "id,text\n" + "".join(f'{n},"some, text"\n' for n in range(300))


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


WRONG = {
    "array": (json.dumps(ROWS), "a JSON array: one object a line is expected; jq -c '.[]'"),
    "array of few": (json.dumps(ROWS[:1]), "a JSON array"),
    "indented array": (json.dumps(ROWS, indent=2), "a JSON array"),
    "array of lines": ("[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n", "a JSON array"),
    "array of one line": ("[\n" + json.dumps(ROWS[0]) + "\n]", "a JSON array"),
    "array behind blank lines": ("\n\n  " + json.dumps(ROWS), "a JSON array"),
    "long array": (json.dumps(ROWS * 30), "a JSON array"),
    "indented object": (json.dumps(ROWS[0], indent=4), "one JSON object over several lines"),
    "long indented object": (json.dumps({"rows": ROWS * 30}, indent=1), "one JSON object over several lines"),
    "indented objects": ("\n".join(json.dumps(row, indent=2) for row in ROWS), "one JSON object over several lines"),
    "csv": (CSV, "CSV with the columns id, text: CsvReader(...) reads it"),
    "tsv": ("id\ttext\n1\ta\n2\tb\n", 'CsvReader(..., read_kwargs={"delimiter": "\\t"})'),
    "quoted csv": ('"id","text"\n"1","a ""b"" c"\n', "CSV with the columns id, text"),
    "utf-16": ("\ufeff".encode("utf-16-le") + LINES.encode("utf-16-le"), "text in UTF-16"),
    "gzip": (gzip.compress(LINES.encode()), "gzip: a name that ends in .gz says so"),
    "parquet": (parquet(), "Parquet: ParquetReader reads it"),
    "zip": (b"PK\x03\x04rest", "a zip archive"),
}


def columns(reader, path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reader(str(path)).decompose()[1].columns()


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_not_json_lines_is_named_with_its_remedy(tmp_path, kind):
    content, message = WRONG[kind]
    expected = r"^jsonl_reader: expected one JSON object a line in '.*a\.jsonl'; got"
    with pytest.raises(ConfigError, match=expected) as caught:
        columns(JsonlReader, tmp_path / "a.jsonl", content)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["array", "indented object", "csv"])
def test_it_is_seen_through_compression_and_whatever_fields_are_asked_for(tmp_path, kind):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(WRONG[kind][0].encode()))
    stage = JsonlReader(str(path), fields=["id"]).decompose()[1]
    with pytest.raises(ConfigError, match=r"a\.jsonl\.gz"):
        stage.columns()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n",
        LINES,
        LINES.replace('{"id": 0', '"id": 0', 1),
        "[\n" + LINES,
        "[1, 2]\n" + LINES,
        "{\n" + LINES,
        '{"a":\n' + LINES,
        '{"a": "half \\ud800"}\n',
        '{"a": NaN}\n{"a": "\\udfff"}\n',
        "id,text\n" + LINES,
        "nope\n",
        "[1]\n[2]\n",
        json.dumps({"one": "object"}),
        json.dumps({"long": "x" * 100_000}) + "\n" + LINES,
        '{"cut": "' + "x" * 100_000,
        b"\xff\x00\xff",
        "\ufeff" + LINES,
    ],
)
def test_damaged_or_odd_json_lines_are_not_refused(tmp_path, content):
    columns(JsonlReader, tmp_path / "a.jsonl", content)


@pytest.mark.parametrize(
    ("reader", "name", "content", "message"),
    [
        (CsvReader, "a.csv", LINES, "csv_reader: expected CSV in '.*'; got JSON lines: JsonlReader reads them"),
        (CsvReader, "a.csv", parquet(), "ParquetReader reads it"),
        (ParquetReader, "a.parquet", LINES, "expected Parquet in '.*'; got JSON lines: JsonlReader"),
        (ArrowReader, "a.arrow", parquet(), "expected Arrow in '.*'; got Parquet: ParquetReader"),
        (TextReader, "a.txt", gzip.compress(b"text", mtime=0), r"expected plain text in '.*'; got gzip: .*\.gz"),
    ],
)
def test_other_readers_name_what_they_are_given_too(tmp_path, reader, name, content, message):
    with pytest.raises(ConfigError, match=message):
        columns(reader, tmp_path / name, content)


@pytest.mark.parametrize(
    ("reader", "name", "content"),
    [(CsvReader, "a.csv", CSV), (ParquetReader, "a.parquet", parquet()), (TextReader, "a.txt", LINES)],
)
def test_other_readers_take_what_they_expect(tmp_path, reader, name, content):
    assert columns(reader, tmp_path / name, content)


def test_a_wrong_file_among_many_is_found_if_it_is_looked_at(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.jsonl").write_text(LINES)
    (tmp_path / "meta.json").write_text(json.dumps({"name": "corpus", "rows": 9}, indent=2))
    with pytest.raises(ConfigError, match=r"meta\.json"):
        JsonlReader(str(tmp_path)).decompose()[1].columns()
