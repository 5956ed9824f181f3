"""Bytes come back as they were written, and a damaged file is named."""

import bz2
import gzip

import fsspec
import pyarrow as pa
import pytest

from gristmill.errors import ReadError
from gristmill.storage.open_read import file_size, read_all, read_pieces, read_range, read_start

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


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_cut_file_gives_what_is_before_the_cut_and_then_names_itself(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(COMPRESS[suffix](CONTENT)[:-100])
    got = []
    with pytest.raises(ReadError, match=rf"a\{suffix}: expected a whole compressed file; got an error after \d+ bytes"):
        got.extend(read_pieces(str(path)))
    assert CONTENT.startswith(b"".join(got))


def test_a_file_that_is_not_compressed_as_its_name_says_is_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"plain text")
    with pytest.raises(ReadError, match=r"a\.gz"):
        read_all(str(path))


def test_a_range_ends_where_the_file_ends(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    assert [read_range(str(path), s, e).to_pybytes() for s, e in [(2, 4), (8, 100), (50, 60)]] == [b"23", b"89", b""]
    assert file_size(str(path)) == 10
    with pytest.raises(ReadError, match="nowhere"):
        read_range(str(tmp_path / "nowhere"), 0, 1)


def test_urls_are_read_like_files():
    fsspec.filesystem("memory").pipe({"/read/a": b"0123456789", "/read/a.gz": gzip.compress(CONTENT)})
    assert read_range("memory://read/a", 2, 4).to_pybytes() == b"23"
    assert read_all("memory://read/a.gz") == CONTENT
    assert file_size("memory://read/a") == 10
