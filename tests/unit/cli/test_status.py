"""Status reads a run directory, or says that it is none."""

import json
import os
import socket

import msgspec
import pytest

from gristmill.cli.run_files import RunFiles, find_runs
from gristmill.cli.status import read_documents, read_snapshot, status
from gristmill.errors import ConfigError, MachineError
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot
from gristmill.metrics.snapshot_view import where_time_went
from gristmill.runs import store_lease
from gristmill.runs.sinks import LockFile
from gristmill.runs.store_lease import Lease
from gristmill.storage.remote_file_system import RemoteFileSystem

SNAPSHOT = RunSnapshot(
    "demo", "finished", 1.5, 1, 1, 10, 8, 1, 1, 0, 100, 100, 0, 0, None, (StageSnapshot("a", 0, 10, 9),), ("done",)
)


@pytest.fixture
def output(tmp_path):
    (tmp_path / ".gristmill").mkdir()
    (tmp_path / ".gristmill" / "status.json").write_text(json.dumps(msgspec.to_builtins(SNAPSHOT)))
    return tmp_path


def test_a_snapshot_is_read_as_it_was_written(output):
    assert read_snapshot(RunFiles(str(output / ".gristmill"))) == SNAPSHOT


def test_the_output_directory_is_as_good_as_the_run_directory_in_it(output):
    assert [run.place for run in find_runs(str(output), who="status")] == [str(output / ".gristmill")]


def test_the_report_is_part_of_the_documents_once_it_is_there(output):
    (output / ".gristmill" / "report.json").write_text('{"read": 10}')
    documents = read_documents(RunFiles(str(output / ".gristmill")))

    assert documents["report"] == {"read": 10}
    assert documents["status"]["written"] == 8


def test_it_says_where_the_time_went_largest_part_first():
    shares = {"useful": 0.7, "setup": 0.1, "starved": 0.196, "wasted": 0.004}
    running = msgspec.structs.replace(SNAPSHOT, state="running", resource="gpu", shares=shares, bound_s=61.0)

    assert where_time_went(running) == "gpu time: useful 70%, starved 20%, setup 10%"
    assert where_time_went(msgspec.structs.replace(running, state="finished")).endswith(
        "; at least 1:01 of work and set-up"
    )
    assert where_time_went(SNAPSHOT) == ""


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^status: expected the directory of a run \(with status\.json in it\); got "
    ):
        find_runs(str(tmp_path), who="status")


def test_a_file_of_another_shape_is_refused(output):
    (output / ".gristmill" / "status.json").write_text('{"state": 5}')

    with pytest.raises(ConfigError, match="to be written by this version of gristmill"):
        read_snapshot(RunFiles(str(output / ".gristmill")))


def test_a_run_on_a_store_is_read_like_one_on_a_disk():
    import fsspec

    fsspec.filesystem("memory").pipe(
        "/statuses/out/.gristmill/status.json", json.dumps(msgspec.to_builtins(SNAPSHOT)).encode()
    )
    (found,) = find_runs("memory://statuses/out", who="status")

    assert found.place == "memory://statuses/out/.gristmill"
    assert read_snapshot(found) == SNAPSHOT
    assert found.silence_s() < 3600


def running(directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "status.json").write_text(
        json.dumps(msgspec.to_builtins(msgspec.structs.replace(SNAPSHOT, state="running")))
    )
    return LockFile(directory / "lock")


def test_a_dead_run_is_told_from_a_live_one_whatever_its_last_words(tmp_path, capsys):
    lock = running(tmp_path / "run")
    status(str(tmp_path / "run"))
    assert f"It is at work: process {os.getpid()}." in capsys.readouterr().out
    lock.release()
    status(str(tmp_path / "run"))
    shown = capsys.readouterr().out
    assert "demo killed" in shown
    assert f"The run was killed: process {os.getpid()} is gone. The same command continues it." in shown
    (tmp_path / "run" / "lock").write_text(f"77 {socket.gethostname()} another-start")
    status(str(tmp_path / "run"))
    shown = " ".join(capsys.readouterr().out.split())
    assert "process 77 is gone (the machine was restarted since)" in shown
    (tmp_path / "run" / "lock").write_text("77 there another-start")
    status(str(tmp_path / "run"))
    assert "process 77 of there is gone. The same" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(ConfigError, match="status: The run was killed"):
        status(str(tmp_path / "run"), watch=True)


@pytest.mark.parametrize("is_late", [False, True], ids=["by the clock", "by its beats"])
def test_a_process_that_lives_and_has_left_its_claim_on_a_store_is_not_at_work(monkeypatch, capsys, is_late):
    """Late by the clock of this machine, which may be wrong, it is listened to: a run renews its claim."""
    place = f"memory://leases/{is_late}"
    store = RemoteFileSystem(place, {})
    store.write(
        f"{place}/status.json",
        json.dumps(msgspec.to_builtins(msgspec.structs.replace(SNAPSHOT, state="running"))).encode(),
    )
    monkeypatch.setattr(store_lease, "RENEW_S", 0.05)
    monkeypatch.setattr(store_lease, "POLL_S", 0.01)
    lease = Lease(store, place, "one")
    lease.take()
    if is_late:
        monkeypatch.setattr(store_lease, "EXPIRY_S", -1.0)
    status(place)
    assert f"It is at work: process {os.getpid()}" in capsys.readouterr().out

    monkeypatch.setattr(store_lease, "EXPIRY_S", -1.0)
    with monkeypatch.context() as away:
        away.setattr(store, "remove", _is_away)
        lease.release()
    status(place)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"The run ended early: process {os.getpid()} is still alive but no longer holds it" in shown
    assert read_documents(RunFiles(place))["process"]["alive"] is False


def _is_away(path):
    raise MachineError("the store cannot be reached")


def test_a_run_that_has_ended_says_nothing_of_its_process(output, capsys):
    LockFile(output / ".gristmill" / "lock").release()
    status(str(output))

    assert "rocess" not in capsys.readouterr().out
    assert read_documents(RunFiles(str(output / ".gristmill")))["process"]["alive"] is False


def test_errors_are_shown_by_stage_and_kind_of_all_segments(tmp_path, capsys):
    running(tmp_path / "run").release()
    for segment, stage in (("segment-1/", "parse"), ("", "score")):
        quarantine = tmp_path / "run" / segment / "quarantine"
        quarantine.mkdir(parents=True)
        line = json.dumps({"stage": stage, "error": "ValueError: no", "kind": "ValueError"})
        (quarantine / "a.jsonl").write_text(f"{line}\n" * 3)
    status(str(tmp_path / "run"))
    shown = capsys.readouterr().out

    assert "3 in parse: ValueError: no" in shown
    assert "3 in score: ValueError: no" in shown


@pytest.mark.parametrize("asked", [".", "deduplicated", ".gristmill/exact"])
def test_a_workflow_of_several_pipelines_shows_them_all_in_order(tmp_path, capsys, asked):
    for age, name in enumerate(("identify", "remove")):
        home = tmp_path / ".gristmill" / "exact" / name
        running(home / "segment-1").release()
        running(home).release()
        (home / "header.json").write_text("{}")
        os.utime(home / "header.json", (age, age))
    (tmp_path / "deduplicated").mkdir()
    status(str(tmp_path / asked))
    shown = capsys.readouterr().out
    assert [line.rpartition("/")[2] for line in shown.splitlines() if line.endswith(":")] == ["identify:", "remove:"]
    status(str(tmp_path / asked), as_json=True)

    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2


@pytest.mark.parametrize("name", ["status", "report"])
def test_a_damaged_file_is_answered_in_words(output, name):
    (output / ".gristmill" / f"{name}.json").write_bytes(b"[" * 100_000 + b"\xff")

    with pytest.raises(ConfigError, match=rf"{name}\.json"):
        read_documents(RunFiles(str(output / ".gristmill")))
    if name == "status":
        with pytest.raises(ConfigError, match=r"status\.json"):
            read_snapshot(RunFiles(str(output / ".gristmill")))
