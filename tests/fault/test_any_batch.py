"""Items that are not documents survive what documents survive: kills at any moment, and little memory."""

import contextlib
import json
import os
import random
import signal
import sys

import psutil
import pytest
from tests.byte_batch import encoded, expected_output, make_payloads, run
from tests.fault.processes import DEADLINE_S, finish, pause, wait_until
from tests.fault.traces import contents, ledger, temporary_files

from gristmill.backends.local import LocalExecutor

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS = 12
HELD = 32  # ledger lines with which a run waits to be killed, so that it cannot end before
FILES = 240  # lines are forced to disk together: what is done before the first are there must not be everything
SEED = 5
LIMIT_MB, FILE_MB, LARGE_FILES = 420, 12, 50
ROUNDS = 300_000  # of labour for each batch, so that reading is faster by far


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("payloads") / "raw"
    make_payloads(source, FILES)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed-payloads")
    run(corpus, work, LocalExecutor(num_workers=0), max_quarantined=1.0, quiet=True)
    found = comparable(work)
    assert sum("/payloads/" in name for name in found) == FILES + FILES // 2
    return found


def comparable(work):
    """What a run has left; of a record in quarantine without the traceback, which tells who called the stage."""
    found = contents(work)
    for name in [name for name in found if name.startswith("run/quarantine/") and name.endswith(".jsonl")]:
        records = [json.loads(line) for line in found[name].splitlines()]
        found[name] = [record | {"traceback": ""} for record in records]
    return found


def start(scene, corpus, *, address="", limit="", rounds=0, **options):
    return scene.start("-m", "tests.byte_batch", corpus, scene.work, address, limit, rounds, **options)


def lines(scene):
    path = scene.work / "run" / "ledger.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def workers(program):
    with contextlib.suppress(psutil.Error):
        return [worker for server in psutil.Process(program.pid).children() for worker in server.children()]
    return []


@pytest.mark.timeout(600)
def test_kills_of_workers_and_drivers_change_nothing(scene, corpus, undisturbed):
    moments = random.Random(SEED)
    hold = (HELD, scene.work / "run" / "ledger.jsonl")
    program, drivers_killed = start(scene, corpus, hold=hold), 0
    for kill in range(KILLS):
        due = kill * HELD // KILLS
        wait_until(lambda due=due: lines(scene) >= due, what=f"{due} ledger lines", program=program)
        pause(moments.uniform(0, 0.05))
        if kill % 4 == 3:
            program.kill()
            program.communicate()
            drivers_killed += 1
            program = start(scene, corpus, hold=hold)
            continue
        found = wait_until(lambda p=program: workers(p), what="a worker", program=program)
        assert found, f"the run ended before kill {kill} of {KILLS}"
        with contextlib.suppress(psutil.NoSuchProcess):
            moments.choice(found).send_signal(signal.SIGKILL)
    program.kill()
    program.communicate()
    finish(start(scene, corpus))

    assert drivers_killed == KILLS // 4
    assert comparable(scene.work) == undisturbed
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(FILES)), "finished work was redone"
    wait_until(lambda: not scene.processes(), what="every process to end")
    assert temporary_files(scene.work) == []


@pytest.mark.timeout(600)
@pytest.mark.cluster
@pytest.mark.heavy
@pytest.mark.xdist_group("ray")
def test_a_driver_killed_on_ray_is_continued_to_the_same_bytes(scene, corpus, undisturbed, ray_cluster):
    program = start(scene, corpus, address=ray_cluster.address, hold=(HELD // 4, scene.work / "run" / "ledger.jsonl"))
    wait_until(lambda: lines(scene) >= 2, what="2 ledger lines", program=program, deadline_s=4 * DEADLINE_S)
    assert program.poll() is None, program.communicate()
    program.kill()
    program.communicate()
    before = lines(scene)
    finish(start(scene, corpus, address=ray_cluster.address), deadline_s=4 * DEADLINE_S)

    assert 2 <= before < FILES
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(FILES)), "finished work was redone"
    assert comparable(scene.work) == undisturbed


@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Pss")
def test_memory_stays_within_the_limit(scene, tmp_path):
    """All of the input is more than the limit, and it is read faster than it is inspected."""
    source = tmp_path / "large"
    source.mkdir()
    payloads = [os.urandom(1 << 20)] * FILE_MB
    for number in range(LARGE_FILES):
        (source / f"part-{number:03d}.payloads").write_bytes(encoded(payloads))
    program = start(scene, source, limit=f"{LIMIT_MB}MB", rounds=ROUNDS)
    peak = 0

    def look():
        nonlocal peak
        total = 0
        for process in scene.processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().pss
        peak = max(peak, total)
        pause(0.05)  # looking takes the kernel a millisecond a process, which the program needs too
        return program.poll() is not None

    wait_until(look, what="the program to end", deadline_s=4 * DEADLINE_S)
    out, errors = program.communicate()
    assert program.returncode == 0, errors
    assert out.split() == [str(LARGE_FILES * FILE_MB)] * 2
    assert FILE_MB * LARGE_FILES > LIMIT_MB
    assert peak < LIMIT_MB << 20
    written = {file.name: file.read_bytes() for file in (scene.work / "out").glob("*.payloads")}
    assert written == expected_output(source)
