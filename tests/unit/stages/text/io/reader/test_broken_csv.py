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
