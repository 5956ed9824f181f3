"""The event log of a real run replays to the same decisions: elsewhere, after a crash, and not if it was changed."""

import signal
import sys
from pathlib import Path

import psutil
import pytest
from tests.fault import curate, poison
from tests.fault.corpus import make_corpus
from tests.fault.processes import finish, wait_until
from tests.fault.test_poison_documents import write_corpus

from gristmill.backends.local import LocalExecutor
from gristmill.backends.scheduled.kept_records import read_frames
from gristmill.engine import events as e
from gristmill.engine.event_log import decode_events, encode_events, frame

pytestmark = [pytest.mark.fault, pytest.mark.slow]

COMMAND = Path(sys.executable).parent / "gristmill"


def replay(scene, run_dir, *options, expected=0, seed="4242"):
    """What the command prints in a new process with its own hash seed."""
    program = scene.start("/usr/bin/env", f"PYTHONHASHSEED={seed}", COMMAND, "replay", run_dir, *options)
    return finish(program, expected=expected)


def frames_of(run_dir):
    with (run_dir / "events.log").open("rb") as file:
        return list(read_frames(file))


def events_of(run_dir):
    return [event for call in frames_of(run_dir)[1:] for event in decode_events(call.body)]


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """The directory of a run with documents that kill their worker, raise, and hang."""
    work = tmp_path_factory.mktemp("poisoned")
    bad = {(1, 17): "kill", (2, 3): "raise", (3, 2): "hang"}
    poison.run(write_corpus(work / "raw", bad), work, poison.BreakInTime())
    return work / "run"


@pytest.mark.parametrize("seed", ["0", "4242"])
def test_a_run_full_of_trouble_replays_identically_in_another_process(scene, poisoned, seed):
    out, _ = replay(scene, poisoned, "--check", seed=seed)
    events = events_of(poisoned)

    assert sum(isinstance(event, e.WorkerLost) for event in events) > 2
    assert any(isinstance(event, e.TaskRaised) for event in events)
    assert f"events:   {len(events):,} in " in out
    assert "all as recorded" in out
    assert "end:      finished" in out
    assert "invariants hold" in out


def test_a_killed_worker_is_part_of_the_log(scene, tmp_path):
    make_corpus(tmp_path / "raw", 60)
    gate = tmp_path / "gate"
    gate.write_text("shut\n")
    program = scene.start("-m", "tests.fault.curate", tmp_path / "raw", tmp_path, hold=(1, gate))
    worker = wait_until(lambda: workers_of(program), what="a worker", program=program)[-1]
    worker.send_signal(signal.SIGKILL)
    gate.unlink()
    finish(program)
    out, _ = replay(scene, tmp_path / "run", "--check")

    assert any(isinstance(event, e.WorkerLost) and "SIGKILL" in event.cause for event in events_of(tmp_path / "run"))
    assert "end:      finished" in out


def workers_of(program):
    """The workers of a program; none before it has started them and after it has ended."""
    try:
        return [worker for server in psutil.Process(program.pid).children() for worker in server.children()]
    except psutil.NoSuchProcess:
        return []


def test_the_log_of_a_killed_driver_replays_as_far_as_it_goes(scene, tmp_path):
    make_corpus(tmp_path / "raw", 200)
    run_dir = tmp_path / "run"
    log = run_dir / "events.log"
    program = scene.start("-m", "tests.fault.curate", tmp_path / "raw", tmp_path, "--work-ms", 30)
    wait_until(lambda: log.exists() and events_of(run_dir), what="events on the disk", program=program)
    program.kill()
    program.wait()
    recorded = events_of(run_dir)
    with log.open("ab") as file:
        file.write(frame(encode_events((e.Cancelled(),)))[:-1])  # torn in the middle of the last frame
    out, _ = replay(scene, run_dir, "--check")

    assert recorded
    assert f"events:   {len(recorded):,} in " in out
    assert "the log ends before the run did" in out


def tamper(poisoned, directory, *, keep_checksum):
    """Copy a log without the first error a stage raised; return the number of the first event of that call."""
    number, data = 1, b""
    header, *calls = frames_of(poisoned)
    found = None
    for call in calls:
        events = decode_events(call.body)
        body = call.body
        if found is None and any(isinstance(event, e.TaskRaised) for event in events):
            found = number
            body = encode_events([event for event in events if not isinstance(event, e.TaskRaised)])
        new = frame(body, call.commands_hash)
        data += new[:4] + frame(call.body)[4:8] + new[8:] if keep_checksum else new
        number += len(events)
    directory.mkdir()
    (directory / "events.log").write_bytes(frame(header.body) + data)
    return found


def test_an_event_taken_out_is_caught_and_the_first_event_that_differs_is_named(scene, poisoned, tmp_path):
    number = tamper(poisoned, tmp_path / "run", keep_checksum=False)
    _, err = replay(scene, tmp_path / "run", "--check", expected=1)
    out, _ = replay(scene, tmp_path / "run")

    assert f"event {number}: expected commands with the hash" in err
    assert f"end:      event {number}: expected" in out


def test_a_changed_log_is_caught_before_its_events_are_believed(scene, poisoned, tmp_path):
    number = tamper(poisoned, tmp_path / "run", keep_checksum=True)
    _, err = replay(scene, tmp_path / "run", "--check", expected=1)

    assert f"event {number}: expected the bytes that were written" in err


def test_the_story_of_a_task_tells_how_often_it_was_tried(scene, poisoned):
    lost = next(a for a in events_of(poisoned) if isinstance(a, e.SourceListed)).items[1].name
    out, _ = replay(scene, poisoned, "--task", lost)

    assert "listed, " in out
    assert "lost with worker" in out
    assert "with care STEP" in out
    assert "is committed" in out


def test_a_task_that_is_not_there_is_a_mistake_with_a_hint(scene, poisoned):
    name = next(a for a in events_of(poisoned) if isinstance(a, e.SourceListed)).items[1].name
    _, err = replay(scene, poisoned, "--task", name[:-1], expected=2)

    assert f"expected the id of a task of this run; got {name[:-1]!r}; did you mean" in err


def test_a_run_in_one_process_is_recorded_too(scene, tmp_path):
    poison.run(write_corpus(tmp_path / "raw", {(1, 17): "raise"}), tmp_path, workers=0)
    out, _ = replay(scene, tmp_path / "run", "--check")

    assert "end:      finished" in out


def test_a_run_that_goes_on_has_the_log_of_its_last_driver(scene, tmp_path):
    make_corpus(tmp_path / "raw", 200)
    program = scene.start("-m", "tests.fault.curate", tmp_path / "raw", tmp_path, "--work-ms", 10)
    ledger = tmp_path / "run" / "ledger.jsonl"
    wait_until(lambda: ledger.exists() and ledger.stat().st_size, what="a commit", program=program)
    program.kill()
    program.wait()
    finish(scene.start("-m", "tests.fault.curate", tmp_path / "raw", tmp_path, "--work-ms", 10))
    out, _ = replay(scene, tmp_path / "run", "--check")

    assert "end:      finished" in out


def test_a_run_is_not_recorded_if_it_is_not_wanted(tmp_path):
    make_corpus(tmp_path / "raw", 2)
    pipeline = curate.build(tmp_path / "raw", tmp_path)
    pipeline.run(LocalExecutor(num_workers=0, event_log=False), checkpoint_path=tmp_path / "run")

    assert not (tmp_path / "run" / "events.log").exists()


def test_a_directory_without_a_log_is_refused(scene, tmp_path):
    _, err = replay(scene, tmp_path, expected=2)

    assert "expected the directory of a run (with events.log in it)" in err
