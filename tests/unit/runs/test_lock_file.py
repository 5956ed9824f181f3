"""A lock is held by one process at a time, and is free when that process is gone."""

import os
import subprocess
import sys

import pytest

from gristmill.runs.sinks import Held, LockFile, holder_of

HOLD = "import sys; from pathlib import Path; from gristmill.runs.sinks import LockFile; "


def test_a_lock_is_taken_once_and_names_its_holder(tmp_path):
    lock = LockFile(tmp_path / "lock")
    with pytest.raises(Held, match=f"^process {os.getpid()}$"):
        LockFile(tmp_path / "lock")
    lock.release()

    LockFile(tmp_path / "lock").release()


def test_a_lock_that_was_removed_by_its_holder_can_be_taken(tmp_path):
    LockFile(tmp_path / "lock").release(remove=True)
    lock = LockFile(tmp_path / "lock")

    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    lock.release()


def test_what_was_written_into_it_by_others_is_not_an_error(tmp_path):
    (tmp_path / "lock").write_bytes(b"\xff\0 garbage")
    found, lives = holder_of(tmp_path / "lock")

    assert not lives
    assert str(found).startswith("process ")
    LockFile(tmp_path / "lock").release()


@pytest.mark.slow
@pytest.mark.fault
def test_the_holder_lives_until_its_process_is_gone_however_it_went(tmp_path):
    path = tmp_path / "lock"
    assert holder_of(path) is None
    code = HOLD + f"lock = LockFile(Path({str(path)!r})); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        found, lives = holder_of(path)
        assert (found.pid, lives) == (str(holder.pid), True)
        holder.kill()
    found, lives = holder_of(path)

    assert (found.pid, lives) == (str(holder.pid), False)
    LockFile(path).release()
