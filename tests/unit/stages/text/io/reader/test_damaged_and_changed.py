"""Every reader refuses a file that changed, keeps what is good of a damaged one, and passes over what is too large."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, InputChanged
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import StageContext
from gristmill.stages.io import line_blocks
from gristmill.stages.text.io import (
    ArrowReader,
    CsvReader,
    JsonlReader,
    JsonlWriter,
    ParquetReader,
    ParquetWriter,
    TextReader,
)
from gristmill.tasks import DocumentBatch

TABLE = pa.table({"id": [str(i) for i in range(200)], "text": [f"text {i}" * 9 for i in range(200)]})
LINES = [json.dumps(row).encode() + b"\n" for row in TABLE.to_pylist()]
GZIPPED = gzip.compress(b"".join(LINES), mtime=0)
CSV = b"id,text\n" + b"".join(f"{row['id']},{row['text']}\n".encode() for row in TABLE.to_pylist())


def write_parquet(path):
    pq.write_table(TABLE, path, row_group_size=20)


def write_arrow(path):
    with pa.ipc.new_file(str(path), TABLE.schema) as file:
        file.write_table(TABLE, max_chunksize=20)


READERS = {
    "jsonl in ranges": (lambda p: JsonlReader(p, blocksize=5000), "a.jsonl", b"".join(LINES)),
    "jsonl at once": (JsonlReader, "a.jsonl", b"".join(LINES)),
    "jsonl compressed": (JsonlReader, "a.jsonl.gz", GZIPPED),
    "jsonl compressed, streamed": (lambda p: JsonlReader(p, blocksize=2000), "a.jsonl.gz", GZIPPED),
    "csv": (CsvReader, "a.csv", CSV),
    "csv compressed": (CsvReader, "a.csv.gz", gzip.compress(CSV, mtime=0)),
    "text": (TextReader, "a.txt", b"some text\n" * 1000),
    "lines of text": (lambda p: TextReader(p, document_per="line", blocksize=3000), "a.txt", b"some text\n" * 1000),
    "lines of compressed text": (lambda p: TextReader(p, document_per="line"), "a.txt.gz", GZIPPED),
    "parquet": (ParquetReader, "a.parquet", write_parquet),
    "row groups of parquet": (lambda p: ParquetReader(p, blocksize=1000), "a.parquet", write_parquet),
    "arrow": (ArrowReader, "a.arrow", write_arrow),
    "arrow, streamed": (lambda p: ArrowReader(p, blocksize=2000), "a.arrow", write_arrow),
    "csv, streamed": (lambda p: CsvReader(p, blocksize=1000), "a.csv", CSV * 300),
}  # fmt: skip
CHANGES = {
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "appended": lambda path: path.write_bytes(path.read_bytes() + path.read_bytes()),
    "replaced": lambda path: shutil.copy(path, path.with_name("b")) and path.with_name("b").rename(path),
    "deleted": lambda path: path.unlink(),
    "touched": lambda path: os.utime(path, ns=(1, 1)),
    "overwritten": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
}  # fmt: skip


def prepared(tmp_path, kind):
    make, name, content = READERS[kind]
    path = tmp_path / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    os.utime(path, ns=(10**18, 10**18))
    return path, *make(str(path)).decompose()


def batches(stage, task):
    made = stage.process(task)
    return [made] if isinstance(made, DocumentBatch) else list(made)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", READERS)
def test_a_file_that_changed_after_it_was_listed_is_refused_and_named(tmp_path, kind, change):
    path, partitioning, stage = prepared(tmp_path, kind)
    tasks = partitioning.partitions()
    assert sum(batch.num_items for task in tasks for batch in batches(stage, task)) > 0
    CHANGES[change](path)
    for task in tasks:
        with pytest.raises(InputChanged, match=path.name):
            batches(stage, task)
    assert stage.context.quarantined == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["jsonl compressed, streamed", "arrow, streamed", "csv, streamed"])
def test_a_file_that_changes_between_two_batches_of_a_stream_is_refused(tmp_path, kind, change):
    path, partitioning, stage = prepared(tmp_path, kind)
    (task,) = partitioning.partitions()
    stream = stage.process(task)
    next(stream)
    CHANGES[change](path)
    with pytest.raises(InputChanged, match=path.name):
        list(stream)


# Damage


def found(reader):
    """The documents of all partitions as rows, and what was reported."""
    partitioning, stage = reader.decompose()
    stage.context = StageContext()
    made = [batch for task in partitioning.partitions() for batch in batches(stage, task)]
    return [row for batch in made for row in batch.to_pyarrow().to_pylist()], stage.context.quarantined


def test_the_lines_before_the_cut_of_a_compressed_file_are_kept(tmp_path):
    chance = random.Random(3)
    rows = [{"id": str(i), "text": f"{chance.getrandbits(200):x}"} for i in range(2000)]
    content = {
        "a.jsonl.gz": b"".join(json.dumps(row).encode() + b"\n" for row in rows),
        "a.csv.gz": b"id,text\n" + b"".join(f"{row['id']},{row['text']}\n".encode() for row in rows),
        "a.txt.gz": b"".join(row["text"].encode() + b"\n" for row in rows),
    }
    for name, plain in content.items():
        whole = gzip.compress(plain)
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    for reader, name, column in [
        (JsonlReader(str(tmp_path / "a.jsonl.gz")), "a.jsonl.gz", "id"),
        (CsvReader(str(tmp_path / "a.csv.gz")), "a.csv.gz", "id"),
        (TextReader(str(tmp_path / "a.txt.gz"), document_per="line"), "a.txt.gz", "text"),
    ]:
        kept, (record,) = found(reader)
        assert 800 < len(kept) < 1200
        assert [row[column] for row in kept] == [row[column] for row in rows[: len(kept)]]
        assert (record.kind, record.num_documents, record.source) == ("damaged", 0, str(tmp_path / name))


def test_a_cut_text_file_is_one_document_that_is_quarantined_with_what_is_left_of_it(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"some text")[:-9])
    kept, (record,) = found(TextReader(str(tmp_path)))
    assert (kept, record.kind, record.num_documents) == ([], "damaged", 1)


@pytest.mark.parametrize("behind", [bytes(1000), b"garbage"])
def test_what_is_behind_the_end_costs_no_document_not_even_one_without_newline(tmp_path, behind):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"".join(LINES).rstrip()) + behind)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"some text") + behind)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV.rstrip()) + behind)
    for reader, count in [(JsonlReader, 200), (CsvReader, 200), (TextReader, 1)]:
        kept, records = found(reader(str(tmp_path)))
        assert len(kept) == count
        assert [(r.num_documents, r.lost_bytes) for r in records] == [(0, 7)] * (behind == b"garbage")


def test_half_a_line_before_a_damaged_member_is_not_a_document(tmp_path):
    second = bytearray(gzip.compress(b"rest\nthree\n"))
    second[0] ^= 1
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\ntwo and the ") + second)
    kept, (record,) = found(TextReader(str(tmp_path), document_per="line"))
    assert ([row["text"] for row in kept], record.lost_bytes) == (["one"], len(second))


def test_a_few_bytes_of_garbage_are_not_an_empty_document(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(b"plain")
    kept, (record,) = found(TextReader(str(tmp_path)))
    assert (kept, record.kind) == ([], "damaged")


def test_a_flipped_bit_in_a_page_is_a_lost_part_and_never_another_text(tmp_path):
    ParquetWriter(str(tmp_path), write_kwargs={"compression": "none", "use_dictionary": False}).process(
        DocumentBatch("d", TABLE)
    )
    (path,) = tmp_path.glob("*.parquet")
    whole = path.read_bytes()
    expected = TABLE.to_pylist()
    assert found(ParquetReader(str(path))) == (expected, [])
    chance = random.Random(1)
    seen = {"lost": 0, "same": 0}
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(4, len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        kept, records = found(ParquetReader(str(path), fields=["id", "text"]))
        if records:
            assert (kept, [r.num_documents for r in records]) == ([], [0])
            assert records[0].lost_bytes == len(whole)
            seen["lost"] += 1
        else:
            # The footer has no checksum: it may name a column otherwise, or hold other statistics.
            values = {tuple(row.values()) for row in kept}
            assert values <= {tuple(row.values()) for row in expected} | {(row["id"], None) for row in expected} | {
                (None, row["text"]) for row in expected
            }
            seen["same"] += 1
    assert seen["lost"] > 30


def test_a_parquet_file_whose_footer_is_damaged_is_lost_alone_even_where_files_are_split(tmp_path):
    write_parquet(tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:-200] + bytes(192) + whole[-8:])
    kept, (record,) = found(ParquetReader(str(tmp_path), blocksize=1000))
    assert kept == TABLE.to_pylist()
    assert (record.source, record.num_documents) == (str(tmp_path / "b.parquet"), 0)


FOOTERS = """
import random, sys
from pathlib import Path
from gristmill.stages.text.io import ParquetReader

path = Path(sys.argv[1])
whole = path.read_bytes()
chance = random.Random(1)
for number in range(200):
    damaged = bytearray(whole)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    damaged[chance.randrange(footer, len(whole))] ^= 1 << chance.randrange(8)
    path.write_bytes(damaged)
    partitioning, stage = ParquetReader(str(path), blocksize=chance.choice([1000, 10**8])).decompose()
    tasks = partitioning.partitions()
    stage.columns()
    for task in tasks:
        made = stage.process(task)
        for batch in [made] if hasattr(made, "num_items") else made:
            batch.to_pyarrow()
"""


@pytest.mark.slow
def test_no_damage_of_a_parquet_footer_raises_or_ends_the_process(tmp_path):
    """In a process of its own: pyarrow ends it when some numbers of a damaged footer are asked for."""
    write_parquet(tmp_path / "a.parquet")
    command = [sys.executable, "-c", FOOTERS, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# Lines that are too long

lengths = st.lists(st.integers(0, 300), max_size=30)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("long")


@given(lengths, st.integers(1, 200), st.integers(1, 250), st.booleans(), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_each_line_is_a_document_or_too_large_wherever_blocks_end(directory, lengths, block, most, ends, name):
    lines = [b'{"t":"%b"}\n' % (b"x" * length) for length in lengths]
    content = b"".join(lines) if ends else b"".join(lines)[:-1]
    path = directory / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    partitioning, stage = JsonlReader(str(path), blocksize=block, max_document_bytes=most).decompose()
    kept = []
    for task in partitioning.partitions():
        for batch in batches(stage, task):
            kept += batch.lines.values.to_pylist()
    few = lines if ends else lines[:-1]  # whether a newline that is missing counts depends on how the file is read
    assert kept[: len(kept) - (not ends and kept[-1:] == lines[-1:])] == [line for line in few if len(line) <= most]
    assert len(kept) + len(stage.context.quarantined) == len(lines)
    complete = stage.completer(stage.context.facts)
    for record in stage.context.quarantined:
        entry = {"source": record.source, "line": record.line, "block_start": record.block_start}
        complete(entry)
        number = entry["line"]
        position = sum(map(len, lines[: number - 1]))
        assert (record.kind, record.num_documents) == ("too_large", 1)
        assert f"line at byte {position:,}:" in record.error
        assert f"got {len(lines[number - 1]) - (not ends and number == len(lines)):,} bytes" in record.error or not ends


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_the_documents_between_long_lines_are_one_batch_a_block(tmp_path, name):
    content = b"".join(b'{"n":%d}\n{"t":"%b"}\n' % (n, b"x" * 300) for n in range(300))
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    partitioning, stage = JsonlReader(str(tmp_path), blocksize=2000, max_document_bytes=200).decompose()
    stage.context = StageContext()
    made = [batch for task in partitioning.partitions() for batch in batches(stage, task)]
    assert [n for batch in made for n in batch.column("n").to_pylist()] == list(range(300))
    assert len(made) < 100
    assert len(stage.context.quarantined) == 300


def test_lines_of_text_that_are_too_long_are_on_record_with_their_place(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\n" + b"x" * 5000 + b"\nthree\n" + b"y" * 70_000 + b"\nfive\n")
    for options in [{}, {"blocksize": 64}, {"blocksize": 10**6}]:
        kept, records = found(TextReader(str(tmp_path), document_per="line", max_document_bytes="1kB", **options))
        assert [row["text"] for row in kept] == ["one", "three", "five"]
        assert [r.kind for r in records] == ["too_large"] * 2
        assert ["byte 4:" in records[0].error, "byte 5,011:" in records[1].error] == [True, True]


def test_a_text_file_that_is_too_large_is_on_record_and_not_read_into_memory(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"x" * 5_000_000))
    (tmp_path / "b.txt").write_bytes(b"small")
    kept, (record,) = found(TextReader(str(tmp_path), max_document_bytes="1MB"))
    assert [row["text"] for row in kept] == ["small"]
    assert (record.kind, record.num_documents) == ("too_large", 1)
    assert "got 5,000,000 bytes" in record.error


def test_a_document_may_take_a_quarter_of_the_memory_unless_told_otherwise(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n{"t":"%b"}\n' % (b"x" * 500))
    _, stage = JsonlReader(str(tmp_path)).decompose()
    for limit, count in [(0, 2), (2000, 1), (4000, 2)]:
        stage.context = StageContext(memory_limit=limit)
        (task,) = JsonlReader(str(tmp_path)).decompose()[0].partitions()
        assert sum(batch.num_items for batch in batches(stage, task)) == count
    with pytest.raises(ConfigError, match="max_document_bytes: expected a number of bytes"):
        JsonlReader("in", max_document_bytes="much")


class _LimitSeen(ProcessingStage):
    """Writes down the memory limit that readers go by."""

    def process(self, task):
        return task.with_column("limit", pa.array([self.context.memory_limit] * task.num_items))


@pytest.mark.parametrize(("options", "limit"), [({}, 0), ({"memory_limit": "3GB"}, 3_000_000_000)])
def test_the_memory_that_happens_to_be_free_does_not_decide_what_is_too_large(tmp_path, options, limit):
    (tmp_path / "a.jsonl").write_bytes(b'{"a":1}\n')
    stages = [JsonlReader(str(tmp_path / "a.jsonl")), _LimitSeen(), JsonlWriter(str(tmp_path / "out"))]
    Pipeline("p", stages=stages).run(LocalExecutor(num_workers=0, **options))
    assert json.loads((tmp_path / "out" / "a.jsonl").read_text())["limit"] == limit


@pytest.mark.parametrize("reader", [CsvReader, ArrowReader])
def test_a_limit_that_a_reader_cannot_keep_is_refused(reader):
    with pytest.raises(ConfigError, match=r"expected no max_document_bytes.* a record batch or a block"):
        reader("in", max_document_bytes="1MB")


def test_each_byte_of_a_long_line_is_looked_at_once(monkeypatch):
    looked_at = 0
    search = line_blocks._after_last_newline

    def counting(view, end, least=0):
        nonlocal looked_at
        found = search(view, end, least)
        looked_at += end - max(found, least)
        return found

    monkeypatch.setattr(line_blocks, "_after_last_newline", counting)
    pieces = [b"x" * 1000] * 1000
    (line,) = line_blocks.stream_blocks(iter(pieces), 1000)
    assert len(line) == 1_000_001
    assert looked_at <= 1_000_001


# Row groups that are too large


def row_groups(tmp_path, rows, **options):
    table = pa.table({"id": range(rows), "text": [f"{n} " + "text" * 100 for n in range(rows)]})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, **options)
    return table


def test_a_row_group_of_many_blocks_is_read_some_rows_at_a_time(tmp_path):
    table = row_groups(tmp_path, 5000, compression="zstd")
    partitioning, stage = ParquetReader(str(tmp_path), blocksize=100_000).decompose()
    (task,) = partitioning.partitions()
    made = list(stage.process(task))
    assert [row for batch in made for row in batch.to_pyarrow().to_pylist()] == table.to_pylist()
    assert len(made) > 10
    assert max(batch.nbytes for batch in made) < 300_000


def test_files_of_one_partition_are_one_batch_until_they_are_too_much(tmp_path):
    for name in "abcdefghij":
        (tmp_path / name).mkdir()
        row_groups(tmp_path / name, 1000)
    partitioning, stage = ParquetReader(str(tmp_path), files_per_partition=10).decompose()
    (task,) = partitioning.partitions()
    assert stage.process(task).num_items == 10_000
    stage.block_bytes = 500_000
    assert [batch.num_items for batch in stage.process(task)] == [1000] * 10


def test_damage_in_a_row_group_that_is_streamed_keeps_the_rows_before_it(tmp_path):
    table = row_groups(tmp_path, 5000, compression="none", write_page_checksum=True, data_page_size=20_000)
    damaged = bytearray((tmp_path / "a.parquet").read_bytes())
    damaged[damaged.index(b"4000 text")] ^= 1
    (tmp_path / "a.parquet").write_bytes(damaged)
    kept, (record,) = found(ParquetReader(str(tmp_path), blocksize=100_000))
    assert 2000 < len(kept) < 4000
    assert kept == table.to_pylist()[: len(kept)]
    assert (record.kind, record.num_documents) == ("damaged", 0)


def test_rows_that_are_too_large_are_on_record_by_their_group(tmp_path):
    small, large = pa.table({"text": ["a", "b"]}), pa.table({"text": ["x" * 100_000] * 3})
    with pq.ParquetWriter(tmp_path / "a.parquet", small.schema, use_dictionary=False) as writer:
        for table in (small, large, small):
            writer.write_table(table)
    kept, (record,) = found(ParquetReader(str(tmp_path), max_document_bytes=10_000))
    assert [row["text"] for row in kept] == ["a", "b", "a", "b"]
    assert (record.kind, record.num_documents) == ("too_large", 3)
    assert "a.parquet, row group 1 of 3 rows: expected a document of at most 10,000 bytes" in record.error


# CSV and Arrow files that are too large for one batch


def test_a_large_csv_file_is_read_a_block_at_a_time_and_its_rows_keep_their_numbers(tmp_path):
    rows = [f'{n},"text, {n}\nand more"\n' for n in range(300_000)]
    rows[250_000] = "1,2,3\n"
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(rows))
    partitioning, stage = CsvReader(str(tmp_path), blocksize="500kB").decompose()
    (task,) = partitioning.partitions()
    assert stage.streams(task)
    made = list(stage.process(task))
    ids = [value for batch in made for value in batch.column("id").to_pylist()]
    assert ids == [str(n) for n in range(300_000) if n != 250_000]
    assert 1 < len(made) < 20
    (record,) = stage.context.quarantined
    assert (record.kind, record.line, record.document) == ("broken_csv", 250_002, "1,2,3")


def test_a_csv_row_larger_than_arrows_blocks_does_not_lose_its_file(tmp_path):
    (tmp_path / "a.csv").write_text(f"id,text\n1,{'x' * 3_000_000}\n2,y\n")
    kept, records = found(CsvReader(str(tmp_path)))
    assert ([row["id"] for row in kept], records) == (["1", "2"], [])


def test_a_csv_file_with_a_header_only_has_its_columns_and_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n")
    partitioning, stage = CsvReader(str(tmp_path)).decompose()
    batch = stage.process(partitioning.partitions()[0])
    assert (batch.get_columns(), batch.num_items) == (["id", "text"], 0)


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_large_arrow_file_is_read_by_its_record_batches(tmp_path, kind):
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with make(str(tmp_path / "a.arrow"), TABLE.schema) as sink:
        for _ in range(50):
            sink.write_table(TABLE)
    partitioning, stage = ArrowReader(str(tmp_path)).decompose()
    whole = stage.process(partitioning.partitions()[0])
    partitioning, stage = ArrowReader(str(tmp_path), blocksize=20_000).decompose()
    (task,) = partitioning.partitions()
    made = list(stage.process(task))
    assert len(made) > 10
    assert pa.concat_tables([batch.to_pyarrow() for batch in made]).equals(whole.to_pyarrow())
    os.truncate(tmp_path / "a.arrow", (tmp_path / "a.arrow").stat().st_size // 2)
    kept, (record,) = found(ArrowReader(str(tmp_path), blocksize=20_000))
    assert (record.kind, record.num_documents) == ("damaged", 0)
    assert len(kept) % 200 == 0


FRAME = b"\x28\xb5\x2f\xfd"  # where a compressed buffer begins


def arrow_of_batches(kind):
    """Five record batches, and where in the content each begins."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    chance = random.Random(1)
    texts = [[chance.randbytes(30).hex() for _ in range(100)] for _ in range(5)]
    starts = []
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(sink, TEXTS, options=options) as writer:
        for each in texts:
            starts.append(sink.tell())
            writer.write_batch(pa.record_batch([each], schema=TEXTS))
        starts.append(sink.tell())
    return bytearray(sink.getvalue()), starts, texts


TEXTS = pa.schema({"text": pa.string()})


@pytest.mark.parametrize("blocksize", [None, 1000], ids=["at once", "streamed"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_damage_in_the_middle_of_an_arrow_file_costs_what_is_damaged(tmp_path, kind, suffix, blocksize):
    content, starts, texts = arrow_of_batches(kind)
    place = content.index(FRAME, starts[2])
    content[place : place + 8] = bytes(8)
    path = tmp_path / f"a.arrow{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    kept, (record,) = found(ArrowReader(str(tmp_path), blocksize=blocksize))

    good = [0, 1, 3, 4] if kind == "file" else [0, 1]
    assert [row["text"] for row in kept] == [text for number in good for text in texts[number]]
    lost = starts[3] - starts[2] if kind == "file" else len(content) - starts[2]
    share = path.stat().st_size / len(content)
    assert (record.kind, record.num_documents) == ("damaged", 0)
    assert lost * share <= record.lost_bytes <= lost * share + 1


def test_an_arrow_file_without_its_end_keeps_the_batches_before_the_cut(tmp_path):
    content, starts, texts = arrow_of_batches("file")
    (tmp_path / "a.arrow").write_bytes(content[: starts[3] + 100])
    kept, (record,) = found(ArrowReader(str(tmp_path)))

    assert [row["text"] for row in kept] == [text for each in texts[:3] for text in each]
    assert record.lost_bytes == 100
    (tmp_path / "a.arrow").write_bytes(content[: starts[5] + 8])  # all batches, and no list of them
    kept, (record,) = found(ArrowReader(str(tmp_path)))
    assert len(kept) == 500
    assert record.kind == "damaged"
