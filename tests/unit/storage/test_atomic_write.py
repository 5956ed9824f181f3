"""A file is there whole or not at all."""

import os
import time

import fsspec
import pytest
import xxhash
from tests.fault.disk.crashes import Disk
from tests.fault.disk.file_log import FileLog

from gristmill.errors import MachineError
from gristmill.storage.atomic_write import (
    checksum_of,
    force_names,
    make_directory,
    publish,
    remove,
    remove_for_good,
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


def test_a_file_is_published_where_its_directory_is_gone(tmp_path):
    stage_file(f"{tmp_path}/staged", [b"content"])
    publish(f"{tmp_path}/staged", f"{tmp_path}/removed/by/somebody/a")

    assert (tmp_path / "removed" / "by" / "somebody" / "a").read_bytes() == b"content"


def test_a_worker_that_outlives_its_run_leaves_no_file_behind(tmp_path):
    with pytest.raises(MachineError, match=r"tmp/gone/a\.0: No such file or directory"):
        stage_file(f"{tmp_path}/.gristmill/tmp/gone/a.0", [b"x"])
    assert not list(tmp_path.iterdir())


def after_a_crash(log):
    """What is left when everything that can be lost is lost."""
    disk = Disk(log.operations)
    return disk.tree(set(disk.pending), {file: disk.safe.get(file, b"") for file in disk.unsafe()})


def test_a_file_that_was_written_is_there_when_the_machine_stops(tmp_path):
    (tmp_path / "b").write_text("old")
    log = FileLog(tmp_path)
    with log.taken():
        write_file(f"{tmp_path}/a", [b"new"])
        with whole_file(tmp_path / "b", forced=True) as temporary:
            temporary.write_text("new")
        with whole_file(tmp_path / "c") as temporary:
            temporary.write_text("new")
        write_file(f"{tmp_path}/d", [b"new"], forced=False)

    assert after_a_crash(log) == {"": None, "a": b"new", "b": b"new"}


def test_what_is_removed_for_good_does_not_come_back_when_the_machine_stops(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("old")
    log = FileLog(tmp_path)
    with log.taken():
        remove_for_good([f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/gone/d"])
        remove(f"{tmp_path}/c")

    assert after_a_crash(log) == {"": None, "c": b"old"}


@pytest.mark.parametrize("above", [True, False])
def test_the_name_of_a_new_directory_is_forced_with_those_in_it(tmp_path, above):
    log = FileLog(tmp_path)
    with log.taken():
        make_directory(f"{tmp_path}/a/b/c")
        force_names(f"{tmp_path}/a/b/c", above=above)

    assert ("a/b/c" in after_a_crash(log)) == above


def test_directories_in_which_nothing_happens_are_not_forced(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    long_ago = time.time() - 3600
    os.utime(tmp_path / "a", (long_ago, long_ago))
    log = FileLog(tmp_path)
    with log.taken():
        force_names(f"{tmp_path}/a/b/c", above=True)

    assert len(log.operations) - log.begun == 2
