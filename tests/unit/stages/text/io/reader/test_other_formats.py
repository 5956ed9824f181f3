"""Parquet, Arrow, CSV and text files become documents without a guess about their types."""

import datetime
import decimal
import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.io import ArrowReader, ArrowWriter, CsvReader, ParquetReader, ParquetWriter, TextReader
from gristmill.tasks import DocumentBatch

TABLE = pa.table(
    {
        "text": ["a", None, ""],
        "category": pa.array(["x", "y", "x"]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.00")], pa.decimal128(10, 2)),
        "when": pa.array([datetime.datetime(2024, 1, 1)] * 3, pa.timestamp("ns", "UTC")),
        "large": pa.array(["p", "q", "r"], pa.large_string()),
        "nested": [[{"k": 1}], [], None],
    }
).replace_schema_metadata({"made": "by hand"})


def write_arrow(table, path):
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


def read(reader):
    partitioning, stage = reader.decompose()
    return [stage.process(task) for task in partitioning.partitions()], stage


@pytest.mark.parametrize(("writer", "reader"), [(ParquetWriter, ParquetReader), (ArrowWriter, ArrowReader)])
def test_types_and_metadata_survive_writing_and_reading(tmp_path, writer, reader):
    writer(str(tmp_path)).process(DocumentBatch("d", TABLE))
    (batch,), stage = read(reader(str(tmp_path)))
    assert batch.to_pyarrow().equals(TABLE)
    assert batch.to_pyarrow().schema.metadata[b"made"] == b"by hand"
    assert stage.columns() == TABLE.column_names


@pytest.mark.parametrize(("writer", "reader"), [(ParquetWriter, ParquetReader), (ArrowWriter, ArrowReader)])
def test_fields_are_read_in_their_order_and_null_where_missing(tmp_path, writer, reader):
    writer(str(tmp_path)).process(DocumentBatch("d", TABLE))
    (batch,), _ = read(reader(str(tmp_path), fields=["nested", "absent", "text"]))
    assert batch.to_pyarrow().column_names == ["nested", "absent", "text"]
    assert batch.column("absent").to_pylist() == [None] * 3


def test_row_groups_of_one_file_are_read_once_each(tmp_path):
    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "a.parquet", row_group_size=100, compression="none")
    batches, _ = read(ParquetReader(str(tmp_path), blocksize=2000))
    assert len(batches) > 2
    assert [a for batch in batches for a in batch.column("a").to_pylist()] == list(range(1000))


@pytest.mark.parametrize(("reader", "name"), [(ParquetReader, "a.parquet"), (ArrowReader, "a.arrow")])
def test_a_damaged_file_is_named_as_lost_and_the_files_beside_it_are_read(tmp_path, reader, name):
    write = {"a.parquet": pq.write_table, "a.arrow": write_arrow}[name]
    write(TABLE, tmp_path / f"b{name[1:]}")
    (tmp_path / name).write_bytes(name[2:6].upper().encode() + b" this is not what it says")
    (batch,), stage = read(reader(str(tmp_path), files_per_partition=2))
    assert batch.to_pyarrow().equals(TABLE)
    (record,) = stage.context.quarantined
    assert (record.kind, record.source) == ("damaged", str(tmp_path / name))
    assert (record.num_documents, record.lost_bytes) == (0, 29)
    assert name in record.error
    assert reader(str(tmp_path)).decompose()[1].columns() is None


@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_columns_of_an_arrow_file_are_known_from_its_beginning(tmp_path, make, suffix):
    table = pa.table({"id": range(100_000), "text": ["text"] * 100_000})
    sink = pa.BufferOutputStream()
    with make(sink, table.schema) as file:
        file.write_table(table)
    whole = sink.getvalue().to_pybytes()
    start = whole[:1000]  # the rest is never asked for
    (tmp_path / f"a.arrow{suffix}").write_bytes(gzip.compress(start) if suffix else start)
    assert ArrowReader(str(tmp_path)).decompose()[1].columns() == ["id", "text"]


def test_lines_of_a_compressed_text_come_in_batches_if_they_are_many(tmp_path):
    lines = [f"line {n}" for n in range(2000)]
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    ((made,), _) = read(TextReader(str(tmp_path), document_per="line", blocksize=1000))
    batches = list(made)
    assert max(batch.num_items for batch in batches) < 400
    assert [text for batch in batches for text in batch.column("text").to_pylist()] == lines


def test_an_arrow_stream_is_read_like_a_file(tmp_path):
    with pa.ipc.new_stream(str(tmp_path / "a.arrows"), TABLE.schema) as stream:
        stream.write_table(TABLE)
    (batch,), _ = read(ArrowReader(str(tmp_path)))
    assert batch.to_pyarrow().equals(TABLE)


def test_csv_values_stay_as_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text('id,text,n\n00123,"two\nlines, one ""field""",1e5\n,,NA\n')
    (batch,), stage = read(CsvReader(str(tmp_path)))
    assert batch.to_pyarrow().to_pydict() == {
        "id": ["00123", ""], "text": ['two\nlines, one "field"', ""], "n": ["1e5", "NA"],
    }  # fmt: skip
    assert stage.columns() == ["id", "text", "n"]


def test_a_csv_row_with_the_wrong_number_of_fields_goes_to_quarantine(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a;b\n1;2\n3\n4;5\n"))
    (batch,), stage = read(CsvReader(str(tmp_path), read_kwargs={"delimiter": ";"}))
    assert batch.column("a").to_pylist() == ["1", "4"]
    (record,) = stage.context.quarantined
    assert (record.line, record.document, record.error) == (3, "3", "expected 2 fields; got 1")


def test_an_empty_csv_file_has_no_documents(tmp_path):
    (tmp_path / "a.csv").write_text("")
    assert read(CsvReader(str(tmp_path)))[0][0].num_items == 0


def test_a_delimiter_of_two_characters_is_refused():
    with pytest.raises(ConfigError, match="expected delimiter to be one character; got '::'"):
        CsvReader("in", read_kwargs={"delimiter": "::"})


def test_a_text_file_is_one_document(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo é\n".encode())
    (batch,), stage = read(TextReader(str(tmp_path)))
    assert batch.to_pyarrow().to_pydict() == {"text": ["one\r\ntwo é\n"], "file_name": [str(tmp_path / "a.txt")]}
    assert stage.columns() == ["text", "file_name"]


@pytest.mark.parametrize("block", [1, 7, None])
def test_each_line_of_text_is_a_document_wherever_the_file_is_cut(tmp_path, block):
    (tmp_path / "a.txt").write_bytes(b"one\r\n\n \ntwo\nb\xffd\nthree")
    batches, stage = read(TextReader(str(tmp_path), blocksize=block, document_per="line"))
    assert [t for batch in batches for t in batch.column("text").to_pylist()] == ["one", "two", "three"]
    assert [record.document for record in stage.context.quarantined] == ["b\N{REPLACEMENT CHARACTER}d"]


def test_documents_per_anything_else_are_refused():
    with pytest.raises(ConfigError, match=r"expected document_per to be one of .*; got 'lines'; did you mean 'line'\?"):
        TextReader("in", document_per="lines")
