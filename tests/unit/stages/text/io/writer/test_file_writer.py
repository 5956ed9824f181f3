"""Writers name files after batches, stage them inside a run, and touch nothing before a run starts."""

from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
import xxhash

from gristmill.errors import ConfigError
from gristmill.stages.context import StageContext
from gristmill.stages.text.io import ArrowWriter, CsvWriter, JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch

WRITERS = [JsonlWriter, ParquetWriter, ArrowWriter, CsvWriter]


def batch_of(*texts, task_id="part-0"):
    batch = DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string())}))
    batch.task_id = task_id
    return batch


@pytest.mark.parametrize("writer", WRITERS)
def test_inside_a_run_a_file_waits_under_a_temporary_name(tmp_path, writer):
    stage = writer(str(tmp_path))
    stage.context = StageContext(session="s", attempt="0")
    (tmp_path / ".gristmill/tmp/s").mkdir(parents=True)
    (staged,) = stage.process(batch_of("a", "b")).staged
    assert not Path(staged.final).exists()
    data = Path(staged.temporary).read_bytes()
    assert staged.final == f"{tmp_path}/part-0.{stage.file_extension}"
    assert (staged.num_bytes, staged.num_documents) == (len(data), 2)
    assert staged.checksum == f"xxh3:{xxhash.xxh3_128_hexdigest(data)}"


@pytest.mark.parametrize("writer", WRITERS)
def test_outside_a_run_a_file_appears_at_once_and_alone(tmp_path, writer):
    result = writer(str(tmp_path)).process(batch_of("a"))
    assert [str(p) for p in tmp_path.iterdir()] == result.data
    assert result.staged == ()


@pytest.mark.parametrize("writer", WRITERS)
def test_the_same_batch_gives_the_same_bytes_and_without_an_id_a_name_from_them(tmp_path, writer):
    first = writer(str(tmp_path / "1")).process(batch_of("a", "é", task_id=""))
    second = writer(str(tmp_path / "2")).process(batch_of("a", "é", task_id=""))
    assert Path(first.data[0]).name == Path(second.data[0]).name
    assert Path(first.data[0]).read_bytes() == Path(second.data[0]).read_bytes()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_without_documents_writes_no_file(tmp_path, writer):
    assert writer(str(tmp_path)).process(batch_of()).data == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def used(tmp_path):
    for name in ("old.jsonl", "sub/older.jsonl", ".gristmill/ledger.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def files_below(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def test_making_a_writer_deletes_nothing(used):
    before = files_below(used)
    for mode in ("ignore", "overwrite", "error"):
        JsonlWriter(str(used), mode=mode)
    assert files_below(used) == before


def test_overwrite_removes_when_the_run_starts_says_what_and_keeps_the_run_directory(used):
    removed = JsonlWriter(str(used), mode="overwrite").prepare_output(resuming=False)
    assert removed == [str(used / "old.jsonl"), str(used / "sub/older.jsonl")]
    assert files_below(used) == [".gristmill/ledger.jsonl"]


@pytest.mark.parametrize("mode", ["ignore", "overwrite", "error"])
def test_a_resumed_run_finds_its_output_untouched(used, mode):
    before = files_below(used)
    assert JsonlWriter(str(used), mode=mode).prepare_output(resuming=True) == []
    assert files_below(used) == before


def test_error_refuses_a_directory_that_has_files_and_takes_one_that_has_none(used, tmp_path):
    with pytest.raises(ConfigError, match=r"expected .* to have no files \(mode 'error'\); got .*old\.jsonl"):
        JsonlWriter(str(used), mode="error").prepare_output(resuming=False)
    JsonlWriter(str(tmp_path / "new"), mode="error").prepare_output(resuming=False)
    assert (tmp_path / "new").is_dir()


def test_a_home_directory_is_never_overwritten(used, monkeypatch):
    monkeypatch.setenv("HOME", str(used))
    before = files_below(used)
    with pytest.raises(ConfigError, match="expected a directory of its own to overwrite"):
        JsonlWriter("~", mode="overwrite").prepare_output(resuming=False)
    assert files_below(used) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "append"}, "got 'append', which would make the output depend on how often the pipeline ran"),
        ({"mode": "overwrit"}, "got 'overwrit'; did you mean 'overwrite'?"),
        ({"write_kwargs": {"storage_opts": {}}}, "got 'storage_opts'; did you mean 'storage_options'?"),
    ],
)
def test_options_that_cannot_work_are_refused_when_the_writer_is_made(options, message):
    with pytest.raises(ConfigError) as caught:
        JsonlWriter("out", **options)
    assert message in str(caught.value)


def test_urls_are_written_like_files():
    result = JsonlWriter("memory://written").process(batch_of("a"))
    assert fsspec.filesystem("memory").cat(result.data[0]) == b'{"text":"a"}\n'
    assert JsonlWriter("memory://written", mode="overwrite").prepare_output(resuming=False) == [
        "memory:///written/part-0.jsonl"
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_an_arrow_file_has_nothing_of_what_lies_behind_its_texts_in_memory(kind):
    width = "int64" if "large" in str(kind) else "int32"
    offsets = pa.array([0, 1, 3], width).buffers()[1]
    texts = pa.Array.from_buffers(kind, 2, [None, offsets, pa.py_buffer(b"abcOF SOMEBODY ELSE")])
    numbers = pa.array([1, 2])
    for table in (pa.table({"text": texts, "n": numbers}), pa.table({"text": texts, "n": numbers}).slice(1)):
        written = b"".join(ArrowWriter("unused").encode(DocumentBatch("d", table)))

        assert b"SOMEBODY" not in written
        assert pa.ipc.open_file(pa.py_buffer(written)).read_all().equals(table)
