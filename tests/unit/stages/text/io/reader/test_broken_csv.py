"""What is wrong in a CSV file costs the rows it is in, and never makes half a document."""

import gzip
import subprocess
import sys
import zlib

import pyarrow as pa
import pytest

from gristmill.errors import DamagedFile
from gristmill.stages.context import StageContext
from gristmill.stages.io.table_reading import in_blocks
from gristmill.stages.text.io import CsvReader
from gristmill.stages.text.io.reader.csv import _WholeLines
from gristmill.tasks import DocumentBatch


def found(path, **options):
    """The rows of a file, and what was reported."""
    partitioning, stage = CsvReader(str(path), **options).decompose()
    stage.context = StageContext()
    made = [stage.process(task) for task in partitioning.partitions()]
    batches = [batch for each in made for batch in ([each] if isinstance(each, DocumentBatch) else each)]
    return [row for batch in batches for row in batch.to_pyarrow().to_pylist()], stage.context.quarantined


def cut_after(content):
    """A gzip file that ends early, behind all of this content."""
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(content) + compressor.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("header", "half"),
    [("id,text", '3,"three, its first line\n'), ("text,id", '"three, ""its"" first line\n'), ("id,text", "3,'three\n")],
)
def test_a_row_that_is_cut_inside_quotes_is_not_a_document(tmp_path, header, half):
    quote = "'" if "'" in half else '"'
    content = f"{header}\n1,one\n2,{quote}two\nlines{quote}\n{half}".encode()
    (tmp_path / "a.csv.gz").write_bytes(cut_after(content))
    kept, records = found(tmp_path, read_kwargs={"quote_char": quote})
    assert [list(row.values()) for row in kept] == [["1", "one"], ["2", "two\nlines"]]
    assert records[-1].kind == "damaged"


def test_whole_rows_before_the_cut_are_kept(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(cut_after(b'id,text\n1,one\n2,"two\nlines"\n3,th'))
    kept, _ = found(tmp_path)
    assert [row["id"] for row in kept] == ["1", "2"]


@pytest.mark.parametrize("blank", [b"\n", b"\r\n\n", b"\n" * 1_500_000])
def test_blank_lines_before_the_header_cost_nothing(tmp_path, blank):
    (tmp_path / "a.csv").write_bytes(blank + b"id,text\n1,one\n")
    assert found(tmp_path) == ([{"id": "1", "text": "one"}], [])


def test_a_row_that_is_not_utf_8_goes_to_quarantine_alone(tmp_path):
    rows = [b"%d,text\n" % n for n in range(1000)]
    rows[500] = b"500,caf\xe9\n"
    rows[600] = b"600,text,more\n"
    (tmp_path / "a.csv").write_bytes(b"id,text\n" + b"".join(rows))
    kept, records = found(tmp_path)
    assert [row["id"] for row in kept] == [str(n) for n in range(1000) if n not in (500, 600)]
    assert sorted((record.kind, record.num_documents) for record in records) == [("bad_utf8", 1), ("broken_csv", 1)]


@pytest.mark.parametrize("row", [b"\xff,b,c", b"a\xe2\x82", b'"\xf0\x9f\n\xff",b,c', "é,ü,".encode() + b"\xc3"])
def test_a_row_that_is_wrong_in_both_ways_goes_to_quarantine_alone(tmp_path, row):
    rows = [f"{n},größer {n}\n" for n in range(1000)]
    content = ["id,text\n", *rows[:500]], ["x,y\n", *rows[500:]]
    (tmp_path / "a.csv").write_bytes("".join(content[0]).encode() + row + b"\n" + "".join(content[1]).encode())
    kept, (record,) = found(tmp_path)

    assert [f"{each['id']},{each['text']}\n" for each in kept] == [*rows[:500], "x,y\n", *rows[500:]]
    assert (record.kind, record.line, record.num_documents) == ("broken_csv", 502, 1)
    assert record.document == row.decode("utf-8", "replace")


def test_bytes_that_are_not_utf_8_are_told_as_they_were(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,text\né,\ufdd0 kept\nü,".encode() + b"b\xfe\xff\n3,c\n")
    kept, (record,) = found(tmp_path)

    assert [list(each.values()) for each in kept] == [["é", "\ufdd0 kept"], ["3", "c"]]
    assert (record.kind, record.document) == ("bad_utf8", "ü,b\ufffd\ufffd")
    assert "in b'\\xfe\\xff'" in record.error


def test_a_header_that_is_not_utf_8_is_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,t\xe9xt\n1,one\n")
    kept, (record,) = found(tmp_path)

    assert kept == []
    assert "expected a CSV header in UTF-8; got id,t\ufffdxt" in record.error
    assert (record.kind, record.num_documents, record.lost_bytes) == ("damaged", 0, 14)


@pytest.mark.parametrize("text", ["é", "€", "😀", "x"])
def test_a_line_of_more_than_a_block_is_not_cut_inside_a_character(text):
    content = ("a" + text * 1000).encode()
    lines = _WholeLines(iter([content[n : n + 7] for n in range(0, len(content), 7)]), b'"', most_held=10)
    parts = []
    while part := lines.read(50):
        parts.append(part)

    assert b"".join(parts) == content
    assert not lines.has_marks


def test_what_a_row_of_more_than_a_block_costs_is_what_follows_it(tmp_path):
    before, after = b"id,text\n" + b"1,one\n" * 300_000, b"2,two\n" * 1000
    (tmp_path / "a.csv").write_bytes(before + b"3," + b"x" * 3_000_000 + b"\n" + after)
    kept, (record,) = found(tmp_path, blocksize=100_000)

    assert len(kept) == 300_000
    assert (record.kind, record.block_start) == ("damaged", len(before))
    assert record.lost_bytes == 3_000_003 + len(after)


def test_what_was_read_before_the_damage_is_kept():
    batch = pa.RecordBatch.from_pydict({"a": [1, 2]})

    def batches():
        yield batch
        raise DamagedFile("cut")

    kept = []
    with pytest.raises(DamagedFile):
        kept.extend(in_blocks(batches(), 1 << 20))  # extend keeps what it got
    assert [table.num_rows for table in kept] == [2]


def test_nothing_is_read_once_nobody_wants_it():
    source = _WholeLines(iter([b"a\n"] * 10), b'"', 1000)
    assert source.read(2) == b"a\n"
    source.stop()
    assert source.read(2) == b""


def test_a_long_line_is_handed_on_in_parts():
    source = _WholeLines(iter([b"x" * 100] * 100), b'"', 1000)
    assert len(source.read(500)) == 500
    assert len(source._left) < 2000


LEFT_EARLY = """
import sys
from gristmill.stages.text.io import CsvReader

partitioning, stage = CsvReader(sys.argv[1], blocksize=1000).decompose()
(task,) = partitioning.partitions()
next(iter(stage.process(task)))
"""


@pytest.mark.slow
def test_a_process_that_leaves_a_csv_file_early_ends_in_peace(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,text\n" + b"1,some text\n" * 1_000_000, 1))
    command = [sys.executable, "-c", LEFT_EARLY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
