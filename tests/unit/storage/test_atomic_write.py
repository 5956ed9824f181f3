"""A file is there whole or not at all."""

import fsspec
import pytest
import xxhash

from gristmill.storage.atomic_write import (
    checksum_of,
    make_directory,
    publish,
    remove,
    stage_file,
    whole_file,
    write_file,
)


def test_a_file_is_written_with_its_size_and_checksum(tmp_path):
    path = str(tmp_path / "new" / "a.jsonl")
    written = write_file(path, [b"one", memoryview(b"two")])
    assert (tmp_path / "new" / "a.jsonl").read_bytes() == b"onetwo"
    assert (written.path, written.num_bytes, written.checksum) == (
        path,
        6,
        f"xxh3:{xxhash.xxh3_128_hexdigest(b'onetwo')}",
    )


def test_large_and_small_chunks_make_one_file(tmp_path):
    large = bytes(range(256)) * 2_000
    chunks = [b"first", large, memoryview(large).cast("b"), b"", large[: 1 << 17], b"last"]
    written = write_file(str(tmp_path / "a"), chunks)
    expected = b"".join(chunks)

    assert (tmp_path / "a").read_bytes() == expected
    assert written.num_bytes == len(expected)
    assert written.checksum == checksum_of(str(tmp_path / "a")) == f"xxh3:{xxhash.xxh3_128_hexdigest(expected)}"


@pytest.mark.parametrize("forced", [True, False])
def test_a_file_written_by_others_appears_whole_or_not_at_all(tmp_path, forced):
    with whole_file(tmp_path / "a", forced=forced) as temporary:
        temporary.write_text("first")
        assert not (tmp_path / "a").exists()

    def begin():
        with whole_file(tmp_path / "a", forced=forced) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "first")]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def chunks():
        yield b"new"
        raise RuntimeError("disk on fire")

    with pytest.raises(RuntimeError, match="disk on fire"):
        write_file(str(path), chunks())
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("root", ["local", "memory://atomic"])
def test_a_staged_file_appears_when_it_is_published_and_publishing_again_is_no_error(tmp_path, root):
    root = str(tmp_path) if root == "local" else root
    fs = fsspec.filesystem("memory" if "://" in root else "file")
    temporary, final = f"{root}/.gristmill/tmp/s/a.0", f"{root}/a"
    make_directory(f"{root}/.gristmill/tmp/s")
    stage_file(temporary, [b"x"])
    assert not fs.exists(final)
    publish(temporary, final)
    publish(temporary, final)
    assert fs.cat(final) == b"x"
    assert not fs.exists(temporary)
    remove(final)
    remove(final)
    assert not fs.exists(final)


def test_a_worker_that_outlives_its_run_leaves_no_file_behind(tmp_path):
    with pytest.raises(FileNotFoundError):
        stage_file(f"{tmp_path}/.gristmill/tmp/gone/a.0", [b"x"])
    assert not list(tmp_path.iterdir())
