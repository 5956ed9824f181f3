"""Inputs are what was planned: found once however they are spelt, refused in words, never a block, never a guess."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
HERE = LocalExecutor(num_workers=0)


@pytest.fixture
def raw(tmp_path, monkeypatch):
    for name in "abc":
        write_documents(tmp_path / "raw" / f"{name}.jsonl", [{"file": name, "n": n} for n in range(5)])
    monkeypatch.chdir(tmp_path)
    return tmp_path / "raw"


def copy(source, out="out", *, checkpoint_path="run", executor=HERE, rejects=None):
    pipeline = Pipeline("copy", stages=[JsonlReader(source), JsonlWriter(out)])
    return pipeline.run(executor, checkpoint_path=checkpoint_path, rejects_path=rejects, max_quarantined=1.0)


def test_the_same_file_by_many_spellings_is_read_once(raw):
    result = copy(["raw", "./raw", str(raw), "raw/a.jsonl", "./raw/../raw/a.jsonl"])
    assert result.read == result.written == 15


def test_a_run_is_continued_whatever_the_spelling_and_the_working_directory(raw, tmp_path, monkeypatch):
    first = copy("raw", rejects="rejects")
    assert not first.already_finished
    (tmp_path / "elsewhere").mkdir()
    ways = [
        (tmp_path, "./raw/", "out/", "./run", "./rejects"),
        (tmp_path, str(raw), str(tmp_path / "out"), str(tmp_path / "run"), str(tmp_path / "rejects")),
        (tmp_path / "elsewhere", "../raw", "../out", "../run", "../rejects"),
        (raw, ".", "../out", tmp_path / "run", "../rejects"),
    ]
    for directory, source, out, run, rejects in ways:
        monkeypatch.chdir(directory)
        again = copy(source, out, checkpoint_path=run, rejects=rejects)
        assert again.already_finished
        assert again.output_files == first.output_files


@processing_stage(name="wander")
def wander(task: DocumentBatch) -> DocumentBatch:
    os.chdir("/")
    return task


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_stage_that_changes_the_working_directory_does_no_harm(raw, tmp_path, workers):
    stages = [JsonlReader("raw"), wander, JsonlWriter("out")]
    result = Pipeline("wandering", stages=stages).run(LocalExecutor(num_workers=workers), rejects_path="rejects")
    assert (result.written, result.quarantined) == (15, 0)
    assert len(read_documents(tmp_path / "out")) == 15


ODD = {
    "named pipe": os.mkfifo,
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link in a circle": lambda path: path.symlink_to(path.name),
    "name that is not UTF-8": lambda path: path.with_name(os.fsdecode(b"caf\xe9.jsonl")).touch(),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ODD)
def test_the_command_line_refuses_what_is_not_a_file_and_does_not_block(raw, tmp_path, kind):
    ODD[kind](raw / "odd.jsonl")
    (tmp_path / "copy.yaml").write_text(
        "name: c\nstages:\n  - JsonlReader: {file_paths: '${input}'}\n  - JsonlWriter: {path: '${output}'}\n"
    )
    command = [*GRISTMILL, "run", "copy.yaml", "--input", "raw", "--output", "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode not in (0, -signal.SIGKILL)
    assert "odd.jsonl" in done.stderr or "caf" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_device_is_refused_and_not_taken_for_an_empty_file(raw):
    with pytest.raises(ConfigError, match="expected a file at '/dev/zero'; got a device"):
        copy("/dev/zero")


@pytest.mark.slow
def test_a_damaged_archive_is_counted_as_a_lost_part_and_gives_the_same_bytes_with_any_workers(raw, tmp_path):
    documents = [{"n": n, "text": f"document {n * 7919**5}"} for n in range(3000)]
    whole = gzip.compress("".join(json.dumps(d) + "\n" for d in documents).encode())
    (raw / "d.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    seen = []
    for workers in (0, 1, 2):
        out = tmp_path / f"out{workers}"
        result = copy("raw", str(out), checkpoint_path=f"run{workers}", executor=LocalExecutor(num_workers=workers))
        kept = [d for d in read_documents(out) if "text" in d]
        assert kept == documents[: len(kept)]
        assert 1000 < len(kept) < 2000
        assert (result.read, result.quarantined) == (15 + len(kept), 0)
        counts = result.counts["jsonl_reader"]
        assert (counts.lost_parts, result.balanced) == (1, True)
        (file,) = result.quarantine_files
        record = json.loads(Path(file).read_text())
        assert (record["kind"], record["source"]) == ("damaged", str(raw / "d.jsonl.gz"))
        seen.append(contents(out))
    assert seen[0] == seen[1] == seen[2]


def test_a_flipped_bit_in_a_parquet_page_is_a_lost_part(tmp_path):
    table = pa.table({"text": [f"text number {n}" for n in range(1000)]})
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(table, tmp_path / "in" / f"{name}.parquet", compression="none", write_page_checksum=True)
    damaged = bytearray((tmp_path / "in" / "b.parquet").read_bytes())
    damaged[damaged.index(b"text number 500")] ^= 1
    (tmp_path / "in" / "b.parquet").write_bytes(damaged)
    out = tmp_path / "out"
    result = Pipeline("p", stages=[ParquetReader(str(tmp_path / "in")), JsonlWriter(str(out))]).run(
        HERE, max_quarantined=1.0
    )
    assert read_documents(out) == table.to_pylist()
    assert result.counts["parquet_reader"].lost_parts == 1
    assert "b.parquet" in str(result.errors)
