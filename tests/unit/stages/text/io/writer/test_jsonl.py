"""What no stage changed is written as it was read; what was changed is written as JSON; the bytes never vary."""

import datetime
import decimal
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from tests.strategies import line_lists

from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.storage.open_read import read_all
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines


def batch_of(lines):
    return DocumentBatch.from_lines("d", JsonLines(pa.array(lines, pa.large_binary())))


def written(batch):
    return b"".join(encode_lines(batch))


@given(line_lists)
def test_reading_and_writing_changes_no_byte(lines):
    assert written(batch_of(lines)) == b"".join(lines)
    parsed = batch_of(lines)
    parsed.to_pyarrow()
    assert written(parsed) == b"".join(lines)


@given(line_lists)
def test_an_added_column_changes_nothing_else(lines):
    scores = [i / 2 for i in range(len(lines))]
    out = written(batch_of(lines).with_column("a new score", pa.array(scores, pa.float64()))).splitlines()
    assert [json.loads(line) for line in out] == [
        {**json.loads(line), "a new score": score} for line, score in zip(lines, scores, strict=True)
    ]
    for line, new in zip(lines, out, strict=True):
        assert new.startswith(line.rstrip()[:-1])


@given(line_lists)
def test_replacing_a_column_leaves_the_bytes_of_the_others(lines):
    out = written(batch_of(lines).with_column("text", pa.array(["new"] * len(lines), pa.string()))).splitlines()
    for line, new in zip(lines, out, strict=True):
        assert json.loads(new) == {**json.loads(line), "text": "new"}
        assert list(json.loads(new)) == list({**json.loads(line), "text": "new"})


def test_numbers_are_not_respelt_when_another_field_changes():
    line = b'{"a": 1.50, "text": "x", "b": 12345678901234567890123, "c": {"z":1e5 , "a": "\\u00e9"}}\n'
    new = written(batch_of([line]).with_column("text", pa.array(["y"])))
    assert new == b'{"a":1.50,"text":"y","b":12345678901234567890123,"c":{"z":1e5 , "a": "\\u00e9"}}\n'


def test_nan_and_lone_surrogates_stay_in_fields_nobody_touched():
    line = b'{"a": NaN, "b": "\\ud800", "text": "x"}\n'
    assert written(batch_of([line]).drop_columns(["text"])) == b'{"a":NaN,"b":"\\ud800"}\n'


def test_a_key_spelt_with_escapes_is_the_same_key():
    assert written(batch_of([b'{"te\\u0078t":"old"}\n']).with_column("text", pa.array(["new"]))) == b'{"text":"new"}\n'


def test_an_empty_object_gets_its_first_field_without_a_comma():
    assert written(batch_of([b"{}\n", b"{ }\r\n"]).with_column("a", pa.array([1, 2]))) == b'{"a":1}\n{"a":2}\n'


def test_arrow_values_are_written_as_json():
    table = pa.table(
        {
            "s": ["é\n"],
            "nan": [float("nan")],
            "null": pa.nulls(1),
            "price": [decimal.Decimal("1.10")],
            "day": [datetime.date(2024, 1, 1)],
            "ns": pa.array([1], pa.timestamp("ns")),
            "list": [[1, None]],
            "category": pa.array(["x"]).dictionary_encode(),
        }
    )
    assert written(DocumentBatch("d", table)).decode() == (
        '{"s":"é\\n","nan":null,"null":null,"price":1.10,"day":"2024-01-01",'
        '"ns":"1970-01-01 00:00:00.000000001","list":[1,null],"category":"x"}\n'
    )


def test_a_large_batch_is_written_in_pieces_that_fit_together():
    texts = [f"{i}" * 3000 for i in range(2000)]
    batch = DocumentBatch("d", pa.table({"i": range(2000), "text": texts}))
    assert len(list(encode_lines(batch))) > 1
    assert [json.loads(line)["text"] for line in written(batch).splitlines()] == texts


@pytest.mark.parametrize("extension", ["jsonl", ".jsonl", "jsonl.gz", "jsonl.zst", "jsonl.bz2"])
def test_compressed_output_is_the_same_bytes_every_time(tmp_path, extension):
    batch = batch_of([b'{"a":1}\n'])
    batch.task_id = "part"
    outputs = [JsonlWriter(str(tmp_path / run), file_extension=extension).process(batch).data[0] for run in "ab"]
    assert Path(outputs[0]).name == f"part.{extension.lstrip('.')}"
    assert Path(outputs[0]).read_bytes() == Path(outputs[1]).read_bytes()
    assert read_all(outputs[0]) == b'{"a":1}\n'


def test_gzip_output_carries_no_time(tmp_path):
    batch = batch_of([b'{"a":1}\n'])
    data = Path(JsonlWriter(str(tmp_path), "jsonl.gz").process(batch).data[0]).read_bytes()
    assert data[4:8] == b"\0\0\0\0"
    assert gzip.decompress(data) == b'{"a":1}\n'


def test_fields_are_the_only_ones_written(tmp_path):
    out = JsonlWriter(str(tmp_path), fields=["b", "absent"]).process(batch_of([b'{"a":1,"b": 2.0}\n', b'{"a":1}\n']))
    assert Path(out.data[0]).read_bytes() == b'{"b":2.0}\n{}\n'


def test_a_whole_file_comes_out_as_it_went_in(tmp_path):
    content = (
        b'{"zip": "00123", "day": "2024-01-01", "n": 1.0, "x": {"k": [1, "a"]}}\n{"unknown":12345678901234567890}\n'
    )
    (tmp_path / "in.jsonl").write_bytes(content)
    partitioning, stage = JsonlReader(str(tmp_path / "in.jsonl")).decompose()
    out = JsonlWriter(str(tmp_path / "out")).process(stage.process(partitioning.partitions()[0]))
    assert Path(out.data[0]).read_bytes() == content
