"""Input files are found wherever they are, in the same order everywhere, and never skipped without a word."""

import os
from pathlib import Path

import fsspec
import pytest

from gristmill.errors import NoInputError
from gristmill.storage.paths import list_files

JSONL = [".jsonl", ".json"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name in ["b.jsonl", "a/x.jsonl.gz", "a/deep/y.json.zst", "a/z.jsonl.bz2", "notes.txt", ".hidden.jsonl",
                 "_logs/l.jsonl", "a/.cache/c.jsonl", "[1].jsonl"]:  # fmt: skip
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(paths, extensions=JSONL):
    return [os.path.relpath(f.path, "in") for f in list_files(paths, extensions=extensions)]


ALL = ["[1].jsonl", "a/deep/y.json.zst", "a/x.jsonl.gz", "a/z.jsonl.bz2", "b.jsonl"]


def test_a_directory_is_searched_to_the_bottom_without_hidden_files_and_in_order(tree):
    assert found("in") == found("in/") == found(["in"]) == found(str(tree / "in")) == ALL


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("in/*.jsonl", ["[1].jsonl", "b.jsonl"]),
        ("in/a/*", ["a/deep/y.json.zst", "a/x.jsonl.gz", "a/z.jsonl.bz2"]),
        ("in/**/*.jsonl.gz", ["a/x.jsonl.gz"]),
        ("in/?.jsonl", ["b.jsonl"]),
        ("in/[a-c].jsonl", ["b.jsonl"]),
        ("in/[!a].jsonl", ["b.jsonl"]),
        ("*/b.jsonl", ["b.jsonl"]),
        ("./in/b*", ["b.jsonl"]),
        ("in/[1].jsonl", ["[1].jsonl"]),
    ],
)
def test_globs_find_what_a_shell_would_and_directories_stand_for_their_files(tree, pattern, expected):
    assert found(pattern) == expected


def test_a_file_named_outright_is_taken_whatever_its_name(tree):
    assert found("in/notes.txt") == ["notes.txt"]


def test_a_file_found_twice_is_read_once(tree):
    assert found(["in/b.jsonl", "in/*.jsonl", "in/b.jsonl"]) == ["[1].jsonl", "b.jsonl"]


def test_size_and_version_are_those_of_the_file(tree):
    (status,) = list_files("in/b.jsonl")
    assert (status.size, status.version) == (1, str(Path("in/b.jsonl").stat().st_mtime_ns))


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ("inn", r"^reader: expected a file ending in .* at 'inn'; got none: '\.' has in; did you mean 'in'\?$"),
        ("in/notes", r"did you mean 'notes.txt'\?"),
        ("in/*.parquet", r"at 'in/\*\.parquet'; got none: 'in' has .*notes\.txt"),
        ("nowhere/*.parquet", r"at 'nowhere/\*\.parquet'; got none$"),
        ("in/_logs/empty", r"got none: 'in/_logs' has l.jsonl"),
        ([], r"^reader: expected at least one path; got \[\]$"),
    ],
)
def test_nothing_found_says_what_is_there_instead(tree, paths, message):
    with pytest.raises(NoInputError, match=message):
        list_files(paths, extensions=JSONL, who="reader")


def test_files_of_other_kinds_are_mentioned(tree):
    with pytest.raises(NoInputError, match=r"got none, but 6 files of other kinds \(\[1\].jsonl, b.jsonl, notes.txt\)"):
        list_files("in", extensions=[".parquet"])


def test_an_empty_directory_is_said_to_be_empty(tmp_path):
    (tmp_path / ".hidden").write_text("")
    with pytest.raises(NoInputError, match=r"the directory has no files but hidden ones \(1\)"):
        list_files(str(tmp_path), extensions=JSONL)


def test_urls_are_searched_like_directories():
    fs = fsspec.filesystem("memory")
    fs.pipe({"/found/a.jsonl": b"1", "/found/sub/b.jsonl": b"22", "/found/_x/c.jsonl": b"", "/found/d.txt": b""})
    files = list_files("memory://found", extensions=JSONL)
    assert [(f.path, f.size) for f in files] == [("memory:///found/a.jsonl", 1), ("memory:///found/sub/b.jsonl", 2)]
    assert [f.path for f in list_files("memory://found/*.jsonl", extensions=JSONL)] == ["memory:///found/a.jsonl"]
    with pytest.raises(NoInputError, match="memory://nowhere"):
        list_files("memory://nowhere")
