"""Bytes come back as they were written, and a damaged file is named."""

import bz2
import errno
import gzip
import os

import fsspec
import pyarrow as pa
import pytest

from gristmill.errors import InputChanged, ReadError
from gristmill.storage.file_system import file_system
from gristmill.storage.open_read import InputFile, file_size, read_all, read_start

CONTENT = b"".join(b"line %d\n" % i for i in range(400_000))
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda b: pa.compress(b, "zstd", asbytes=True),
    "": bytes,
}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_file_is_read_whatever_it_is_compressed_with(tmp_path, suffix):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix](CONTENT))
    assert read_all(str(path)) == CONTENT
    assert read_start(str(path), 5) == b"line "


def test_gzip_files_put_end_to_end_are_one_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read_all(str(path)) == b"one\ntwo\n"


def test_a_file_that_is_not_compressed_as_its_name_says_is_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"plain text")
    with pytest.raises(ReadError, match=r"a\.gz"):
        read_all(str(path))


def ranges(path, *bounds):
    with InputFile(path) as file:
        return [file.read_range(start, end).to_pybytes() for start, end in bounds]


def test_a_range_ends_where_the_file_ends(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    assert ranges(str(path), (2, 4), (8, 100), (50, 60)) == [b"23", b"89", b""]
    assert file_size(str(path)) == 10
    with pytest.raises(ReadError, match="nowhere"):
        ranges(str(tmp_path / "nowhere"), (0, 1))


def test_urls_are_read_like_files():
    fsspec.filesystem("memory").pipe({"/read/a": b"0123456789", "/read/a.gz": gzip.compress(CONTENT)})
    assert ranges("memory://read/a", (2, 4), (8, 100)) == [b"23", b"89"]
    assert read_all("memory://read/a.gz") == CONTENT
    assert file_size("memory://read/a") == 10


# A file that is not what was planned


def planned(path):
    return file_system(str(path)).status(str(path))


def append(path):
    with path.open("ab") as file:
        file.write(b"more\n")


def replace_by_another(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes()[::-1])
    os.utime(other, ns=(1, 1))
    other.rename(path)


CHANGES = {
    "cut": lambda path: os.truncate(path, 100),
    "emptied": lambda path: os.truncate(path, 0),
    "appended": append,
    "replaced": replace_by_another,
    "deleted": lambda path: path.unlink(),
    "touched": lambda path: os.utime(path, ns=(1, 1)),
    "a directory now": lambda path: (path.unlink(), path.mkdir()),
}
NAMES = ["a.jsonl", "a.jsonl.gz", "a.jsonl.bz2", "a.jsonl.zst"]


@pytest.fixture
def small(tmp_path, request):
    path = tmp_path / request.param
    path.write_bytes(COMPRESS[path.suffix if path.suffix != ".jsonl" else ""](CONTENT[:50_000]))
    os.utime(path, ns=(10**18, 10**18))
    return path


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_a_file_changed_before_it_is_opened_is_refused(small, change):
    plan = planned(small)
    CHANGES[change](small)
    with pytest.raises(ReadError, match=r"a\.jsonl") as caught:
        read_all(str(small), planned=plan)
    assert isinstance(caught.value, InputChanged) or change == "a directory now"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("small", NAMES, indirect=True)
def test_a_file_changed_while_it_is_read_is_refused_after_its_last_byte(small, change):
    file = InputFile(str(small), planned=planned(small))
    pieces = file.pieces()
    CHANGES[change](small)
    with pytest.raises(InputChanged, match=r"a\.jsonl"), file:
        list(pieces)


@pytest.mark.parametrize("change", CHANGES)
def test_a_range_of_a_changed_file_is_refused(tmp_path, change):
    path = tmp_path / "a.jsonl"
    path.write_bytes(CONTENT[:50_000])
    os.utime(path, ns=(10**18, 10**18))
    file = InputFile(str(path), planned=planned(path))
    CHANGES[change](path)
    with pytest.raises(InputChanged), file:
        file.read_range(10, 20_000)


def test_a_file_cut_while_it_is_read_is_never_clipped_whatever_was_planned(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    message = "expected 10 bytes, as many as it had when it was opened; got 5"
    with InputFile(str(path)) as file:
        os.truncate(path, 5)
        with pytest.raises(InputChanged, match=message):
            file.read_range(0, 10)


def test_what_was_planned_and_what_is_there_are_both_said(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    os.utime(path, ns=(1_700_000_000 * 10**9, 1_700_000_000 * 10**9))
    plan = planned(path)
    append(path)
    os.utime(path, ns=(1_800_000_000 * 10**9, 1_800_000_000 * 10**9))
    with pytest.raises(InputChanged) as caught:
        read_all(str(path), planned=plan)
    assert "10 bytes, written 2023-11-14 22:13:20" in str(caught.value)
    assert "got 15 bytes, written 2027-01-15 08:00:00" in str(caught.value)
    path.unlink()
    with pytest.raises(InputChanged, match="got nothing: it is gone"):
        read_all(str(path), planned=plan)


def test_an_unchanged_file_passes_and_a_file_nobody_planned_is_not_compared(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    assert read_all(str(path), planned=planned(path)) == b"0123456789"
    with InputFile(str(path)) as file:
        append(path)
        assert file.read_range(0, 100).to_pybytes() == b"0123456789"


def test_an_object_of_a_store_that_changed_is_refused():
    memory = fsspec.filesystem("memory")
    memory.pipe("/changed/a", b"0123456789")
    plan = planned("memory://changed/a")
    assert read_all("memory://changed/a", planned=plan) == b"0123456789"
    memory.pipe("/changed/a", b"9876543210")
    with pytest.raises(InputChanged, match="memory://changed/a"):
        read_all("memory://changed/a", planned=plan)
    memory.rm("/changed/a")
    with pytest.raises(InputChanged, match="it is gone"):
        read_all("memory://changed/a", planned=plan)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir()])
def test_opening_what_is_not_a_file_says_so_and_does_not_wait(tmp_path, make):
    make(tmp_path / "a")
    with pytest.raises(ReadError, match=r"expected a file; got a (named pipe|directory)"):
        read_all(str(tmp_path / "a"))


def test_a_disk_that_fails_is_told_from_a_file_that_is_damaged(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")
    with pytest.raises(ReadError) as caught:
        read_all(str(path))
    assert caught.value.errno == errno.EACCES
