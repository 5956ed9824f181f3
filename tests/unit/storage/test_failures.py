"""A failing disk is described by its file, its error, its room and the way to go on."""

import errno
import os
from pathlib import Path

import pytest

from gristmill.errors import InputChanged, MachineError
from gristmill.storage.atomic_write import explain, explained, free_room, machine_error


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_told_with_its_free_room_and_how_to_go_on(tmp_path: Path) -> None:
    told = explain(str(tmp_path / "not" / "there" / "a.jsonl"), full_disk())

    assert told.startswith(f"{tmp_path}/not/there/a.jsonl: No space left on device (")
    assert "free on its file system" in told
    assert told.endswith("Make room, then run the same command again to go on; nothing that is committed is lost.")


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_every_error_of_the_system_is_told(number: int, tmp_path: Path) -> None:
    told = explain(str(tmp_path), OSError(number, os.strerror(number)))

    assert os.strerror(number) in told
    assert "run the same command again" in told


def test_an_error_without_a_number_is_told_by_what_it_says() -> None:
    assert explain("s3://b/a", OSError("token expired")).startswith("s3://b/a: token expired. Fix this")
    assert explain("a", OSError()).startswith("a: OSError. ")


def test_a_store_has_no_free_room() -> None:
    assert free_room("s3://bucket/a") is None
    assert "free" not in explain("s3://bucket/a", full_disk())


@pytest.mark.parametrize("path", ["", "a", "~/a", "file:///tmp/x", "/dev/null/below/a/file", "x" * 5000])
def test_any_local_path_has_room_around_it(path: str) -> None:
    assert "free on its file system" in str(free_room(path))


def test_the_error_keeps_its_number_and_is_explained_once(tmp_path: Path) -> None:
    first = machine_error(str(tmp_path / "ledger.jsonl"), full_disk())

    assert first.errno == errno.ENOSPC
    assert str(first) == explain(str(tmp_path / "ledger.jsonl"), full_disk())
    assert machine_error("elsewhere", first) is first
    assert explain("elsewhere", first) == str(first)


def test_what_fails_inside_is_raised_in_words(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "a"
    words = r"gone/a: No such file or directory\. Find out what removed it"
    with pytest.raises(MachineError, match=words), explained(path):
        path.write_text("")
    with pytest.raises(InputChanged), explained(tmp_path):
        raise InputChanged("an input's fault stays an input's")
