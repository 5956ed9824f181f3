"""Compressed files, nested directories, globs and URLs are read, each document once."""

import bz2
import gzip
import json

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, read_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

HERE = LocalExecutor(num_workers=0)


def zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


FILES = {
    "plain.jsonl": bytes,
    "nested/deep/er/plain.jsonl": bytes,
    "a.jsonl.gz": gzip.compress,
    "nested/b.jsonl.zst": zstd,
    "nested/c.jsonl.bz2": bz2.compress,
    ".hidden/no.jsonl": bytes,
    "notes.md": bytes,
}


@pytest.fixture
def corpus(tmp_path):
    """Every file has two documents with its own name in them."""
    for name, compress in FILES.items():
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compress("".join(json.dumps({"file": name, "n": n}) + "\n" for n in (1, 2)).encode()))
    return tmp_path / "corpus"


def files_read(source, out):
    Pipeline("p", stages=[JsonlReader(source), JsonlWriter(str(out))]).run(HERE)
    documents = read_documents(out)
    names = [document["file"] for document in documents]
    assert len(set(map(json.dumps, documents))) == len(documents)
    return sorted(set(names)) if len(names) == 2 * len(set(names)) else names


ALL = sorted(name for name in FILES if "jsonl" in name and not name.startswith("."))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{corpus}", ALL),
        ("{corpus}/", ALL),
        ("{corpus}/**/*.jsonl", ["nested/deep/er/plain.jsonl", "plain.jsonl"]),
        ("{corpus}/*.jsonl*", ["a.jsonl.gz", "plain.jsonl"]),
        ("{corpus}/nested/c.jsonl.bz2", ["nested/c.jsonl.bz2"]),
        ("file://{corpus}", ALL),
    ],
)
def test_each_way_of_naming_files_finds_them_all_once(corpus, tmp_path, source, expected):
    """`.jsonl.gz`, `.jsonl.zst`, `.jsonl.bz2`, nested directories, globs, URLs through fsspec."""
    assert files_read(source.format(corpus=corpus), tmp_path / "out") == expected


def test_a_list_of_paths_is_read_in_its_order_without_repeats(corpus, tmp_path):
    sources = [f"{corpus}/plain.jsonl", f"{corpus}/a.jsonl.gz", f"{corpus}/*.jsonl"]

    assert files_read(sources, tmp_path / "out") == ["a.jsonl.gz", "plain.jsonl"]


def test_an_object_store_is_read_and_written_through_fsspec():
    """`s3://` and others through fsspec; here the store is in memory."""
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/promises/in/a.jsonl.gz", gzip.compress(b'{"n": 1}\n{"n": 2}\n'))
    stages = [JsonlReader("memory://promises/in"), JsonlWriter("memory://promises/out")]
    result = Pipeline("p", stages=stages).run(HERE)

    assert result.written == 2
    assert store.cat("/promises/out/a.jsonl") == b'{"n": 1}\n{"n": 2}\n'


@pytest.mark.parametrize("extension", ["jsonl.gz", "jsonl.zst", "jsonl.bz2"])
def test_what_is_written_compressed_is_read_again(corpus, tmp_path, extension):
    Pipeline("p", stages=[JsonlReader(str(corpus)), JsonlWriter(str(tmp_path / "z"), extension)]).run(HERE)

    assert {name.partition(".")[2] for name in contents(tmp_path / "z")} == {extension}
    assert files_read(str(tmp_path / "z"), tmp_path / "out") == ALL
