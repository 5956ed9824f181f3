"""Every line of every file is a document, on record as something else, or blank; wherever the file was cut."""

import bz2
import gzip
import json
import subprocess
import sys

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import line_lists

from gristmill.errors import ConfigError
from gristmill.stages.text.io.reader import JsonlReader, JsonlReaderStage
from gristmill.tasks import FileGroupTask, FileSlice

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda b: pa.compress(b, "zstd", asbytes=True)}


def read(reader):
    """All documents a reader finds, as lines, and the stage that found them."""
    partitioning, stage = reader.decompose()
    lines = []
    for task in partitioning.partitions():
        result = stage.process(task)
        for batch in result if stage.streams(task) else [result]:
            lines += batch.lines.values.to_pylist()
    return lines, stage


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("jsonl")


blank = st.sampled_from([b"\n", b"\r\n", b"  \t\n"])
broken = st.sampled_from(
    [b"{\n", b"nope\n", b"[1]\n", b'"text"\n', b"{'a':1}\n", b'{"a":1}{"b":2}\n', b'{"a":"\xff"}\n', b"1\n"]
)


@given(line_lists, st.integers(1, 60), st.booleans())
def test_cutting_a_file_anywhere_gives_the_same_documents_in_the_same_order(directory, lines, block, ends_with_newline):
    content = b"".join(lines)
    path = directory / "cut.jsonl"
    path.write_bytes(content if ends_with_newline or not content.endswith(b"}\n") else content[:-1])
    assert read(JsonlReader(str(path), blocksize=block))[0] == lines


@given(st.lists(line_lists.map(lambda lines: lines[0] if lines else b"{}\n") | blank | broken), st.integers(1, 100))
def test_each_line_is_a_document_or_on_record_or_blank(directory, lines, block):
    path = directory / "mixed.jsonl"
    path.write_bytes(b"".join(lines))
    found, stage = read(JsonlReader(str(path), blocksize=block))
    assert len(found) + len(stage.context.quarantined) == sum(bool(line.strip()) for line in lines)
    complete = stage.completer(stage.context.facts)
    for record in stage.context.quarantined:
        entry = {"source": record.source, "line": record.line, "block_start": record.block_start}
        complete(entry)
        line = lines[entry["line"] - 1]
        assert line.decode("utf-8", "replace").rstrip("\r\n") == record.document


@pytest.mark.parametrize(
    ("line", "kind", "error"),
    [
        (b'{"a":', "broken_json", "expected JSON; got"),
        (b'{"a":1} {"b":2}', "broken_json", "extra data"),
        (b"[1, 2]", "not_an_object", "expected an object; got list"),
        (b'{"a": "\xe9"}', "bad_utf8", "expected UTF-8; got invalid continuation byte at byte 7"),
        (b'{"\xff": 1}', "bad_utf8", "expected UTF-8"),
        (b'{"a":' + b"[" * 100_000, "broken_json", "nested too deeply"),
    ],
)
def test_a_line_that_is_no_document_goes_to_quarantine_with_file_and_line_number(tmp_path, line, kind, error):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"ok":1}\n\n' + line + b'\n{"ok":2}\n')
    found, stage = read(JsonlReader(str(tmp_path)))
    (record,) = stage.context.quarantined
    assert found == [b'{"ok":1}\n', b'{"ok":2}\n']
    assert (record.kind, record.source, record.line, record.block_start) == (kind, str(path), 3, None)
    assert error in record.error


def test_two_objects_on_one_line_are_no_document_among_lines_that_are(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"ok":1}\n{"a":1}{"b":2}\n')
    found, stage = read(JsonlReader(str(tmp_path)))
    assert found == [b'{"ok":1}\n']
    assert [(r.kind, r.line) for r in stage.context.quarantined] == [("broken_json", 2)]


def test_two_objects_on_one_line_are_not_excused_by_an_object_on_two():
    # Counted by values alone, three lines would hold three objects.
    content = b'{"a":1}{"b":2}\n{"c":\n{"d":1}}\n'
    fsspec.filesystem("memory").pipe("/two/a.jsonl", content)
    found, stage = read(JsonlReader("memory://two/a.jsonl"))
    assert found == []
    assert [r.line for r in stage.context.quarantined] == [1, 2, 3]


@pytest.mark.parametrize(
    "line", [b'{"a": NaN, "b": -Infinity}', b'{"a": "\\ud800"}', b'{"\\ud800": 1}', b'{"n": 1e999}']
)
def test_what_python_reads_is_a_document_with_its_bytes_kept(tmp_path, line):
    (tmp_path / "a.jsonl").write_bytes(line + b"\n" + b'{"a": 1}\n')
    found, stage = read(JsonlReader(str(tmp_path)))
    assert (found, stage.context.quarantined) == ([line + b"\n", b'{"a": 1}\n'], [])


def test_a_byte_order_mark_is_not_part_of_the_first_document(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a":1}\r\n{"a":2}')
    found, stage = read(JsonlReader(str(tmp_path)))
    assert found == [b'{"a":1}\r\n', b'{"a":2}\n']
    assert stage.columns() == ["a"]


def test_empty_files_are_empty_batches(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b""))
    assert read(JsonlReader(str(tmp_path)))[0] == []
    assert read(JsonlReader(str(tmp_path), files_per_partition=2))[0] == []


def test_several_files_of_one_partition_are_one_batch(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(b'{"f":"%b"}\n' % name.encode())
    partitioning, stage = JsonlReader(str(tmp_path), files_per_partition=2).decompose()
    (task,) = partitioning.partitions()
    assert stage.process(task).column("f").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_large_compressed_file_is_streamed_in_blocks(tmp_path, suffix):
    lines = [b'{"id":%d}\n' % (i * 7919**3) for i in range(5000)] + [b'{"long":"%b"}\n' % (b"x" * 5000)]
    (tmp_path / f"a.jsonl{suffix}").write_bytes(COMPRESS[suffix](b"".join(lines)))
    partitioning, stage = JsonlReader(str(tmp_path), blocksize=1000).decompose()
    (task,) = partitioning.partitions()
    assert stage.streams(task)
    batches = list(stage.process(task))
    assert [line for batch in batches for line in batch.lines.values.to_pylist()] == lines
    assert max(batch.lines.nbytes for batch in batches[:-1]) < 3000


@pytest.mark.parametrize("block", [1000, 10**9])
def test_a_cut_gzip_file_gives_what_could_be_read_and_one_record_that_names_it(tmp_path, block):
    lines = [b'{"id":%d}\n' % (i * 7919**3) for i in range(200_000)]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(lines), 1)[:-5000])
    found, stage = read(JsonlReader(str(path), blocksize=block * 1000))
    (record,) = stage.context.quarantined
    assert len(found) > 10_000
    assert found == lines[: len(found)]
    assert (record.kind, record.source, record.num_documents) == ("damaged", str(path), 0)
    assert "a.jsonl.gz" in record.error


def test_a_file_that_may_not_be_split_is_streamed_if_it_is_large(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n' * 1000)
    task = FileGroupTask("d", [str(path)])
    stage = JsonlReaderStage(block_bytes=800)
    assert [batch.num_items for batch in stage.process(task)] == [100] * 10
    assert not stage.streams(FileGroupTask("d", [str(path)], slices=(FileSlice(str(path), (0, 8000)),)))


def test_fields_are_the_only_columns_and_null_where_missing(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1,"b":2}\n{"b":3,"zzz":null}\n')
    partitioning, stage = JsonlReader(str(tmp_path), fields=["b", "zzz", "a"]).decompose()
    table = stage.process(partitioning.partitions()[0]).to_pyarrow()
    assert stage.columns() == table.column_names == ["b", "zzz", "a"]
    assert table.to_pydict() == {"b": [2, 3], "zzz": [None, None], "a": [1, None]}


def test_types_survive(tmp_path):
    document = {"zip": "00123", "day": "2024-01-01", "big": 2**80, "id": 2**63 - 1, "share": 1.0, "ok": True}
    (tmp_path / "a.jsonl").write_text(json.dumps(document) + "\n")
    partitioning, stage = JsonlReader(str(tmp_path)).decompose()
    table = stage.process(partitioning.partitions()[0]).to_pyarrow()
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {"zip": "string", "day": "string", "big": "string", "id": "int64", "share": "double", "ok": "bool"}
    assert table.to_pydict() == {**{k: [v] for k, v in document.items()}, "big": [str(2**80)]}


def test_a_text_found_while_reading_is_the_text_parsed_later(tmp_path):
    documents = [{"text": "é\n" * 300}, {"text": None}, {"other": "x" * 900}, {"text": "last"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents))
    partitioning, stage = JsonlReader(str(tmp_path)).decompose()
    batch = stage.process(partitioning.partitions()[0])
    assert batch.lines.ahead is not None
    assert batch.slice(1).lines.ahead is None
    assert batch.column("text").to_pylist() == [d.get("text") for d in documents]
    assert batch.slice(1).column("text").to_pylist() == [d.get("text") for d in documents[1:]]


def test_columns_are_known_from_the_first_documents(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\nbroken\n{"b":1}')
    stage = JsonlReader(str(tmp_path)).decompose()[1]
    assert stage.columns() == ["a", "b"]
    assert JsonlReader(str(tmp_path / "nowhere")).decompose()[1].columns() is None


def test_urls_are_read_in_parts_like_files():
    lines = [b'{"a":%d}\n' % i for i in range(100)]
    fsspec.filesystem("memory").pipe("/parts/a.jsonl", b"".join(lines))
    assert read(JsonlReader("memory://parts", blocksize=100))[0] == lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"read_kwargs": {"storage_option": {}}}, "got 'storage_option'; did you mean 'storage_options'?"),
        ({"_generate_ids": True}, "The stage AddId gives ids"),
        ({"_assign_ids": True}, "The stage AddId gives ids"),
        ({"task_type": "image"}, "expected task_type 'document'; got 'image'"),
        ({"blocksize": "1 parsec"}, "blocksize: expected a number of bytes"),
    ],
)
def test_options_that_cannot_work_are_refused_when_the_reader_is_made(options, message):
    with pytest.raises(ConfigError) as caught:
        JsonlReader("in", **options)
    assert message in str(caught.value)


def test_reading_text_imports_neither_pandas_nor_fsspec(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text":"a\\n"}\n{"text":null}\n{"text":"\\u00e9"}\n')
    script = f"""
import sys
from gristmill.stages.text.io import JsonlReader, JsonlWriter
partitioning, stage = JsonlReader({str(tmp_path)!r}).decompose()
batch = stage.process(partitioning.partitions()[0])
assert len(batch.column("text")) == 3
JsonlWriter({str(tmp_path / "out")!r}).process(batch)
print(sorted({{"pandas", "fsspec"}} & set(sys.modules)))
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
