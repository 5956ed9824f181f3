"""`kill -9` of anything, at any moment, then the same command again: the output is as if nothing had happened."""

import random
import signal

import psutil
import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run
from tests.fault.processes import finish, pause, wait_until
from tests.fault.traces import contents, ledger, shared_memory, temporary_files

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 204
KILLS = 50
SEED = 20
WORK_MS = 8  # a partition
HELD = 160  # ledger lines with which a run waits to be killed, so that it cannot end before


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("corpus") / "raw"
    make_corpus(source, PARTITIONS)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    run(corpus, work, work_ms=WORK_MS)
    found = contents(work)
    assert {name.partition("/")[0] for name in found} == {"out", "rejects", "run"}
    return found


def curate(scene, corpus, **options):
    # The labour is part of the configuration, so every program of one test is given the same.
    return scene.start("-m", "tests.fault.curate", corpus, scene.work, "--work-ms", WORK_MS, **options)


def lines(scene):
    path = scene.work / "run" / "ledger.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def descendants(program):
    """The fork server and the workers of a program, as lists; empty while it starts or ends."""
    try:
        server = psutil.Process(program.pid).children()
        return server, [worker for process in server for worker in process.children()]
    except psutil.NoSuchProcess:
        return [], []


def assert_nothing_is_left(scene, shared_before):
    wait_until(lambda: not scene.processes(), what="every process to end")
    assert temporary_files(scene.work) == []
    assert list(scene.temporary.iterdir()) == []
    assert shared_memory() <= shared_before


@pytest.mark.timeout(900)  # two minutes where thirty others want the cores; a guard against hanging
def test_fifty_kills_of_workers_and_drivers_change_nothing(scene, corpus, undisturbed):
    shared_before = shared_memory()
    moments = random.Random(SEED)
    hold = (HELD, scene.work / "run" / "ledger.jsonl")
    program, drivers_killed = curate(scene, corpus, hold=hold), 0
    for kill in range(KILLS):
        # Each kill waits for progress first, so that they are spread over the run.
        due = kill * HELD // KILLS
        wait_until(lambda due=due: lines(scene) >= due, what=f"{due} ledger lines", program=program)
        pause(moments.uniform(0, 0.06))
        if moments.random() < 0.2:
            program.kill()
            program.communicate()
            drivers_killed += 1
            program = curate(scene, corpus, hold=hold)
            continue
        workers = wait_until(lambda p=program: descendants(p)[1], what="a worker", program=program)
        if workers is None:
            finish(program)
            raise AssertionError(f"the run ended before kill {kill} of {KILLS}")
        victim = moments.choice(workers)
        if victim.is_running():
            victim.send_signal(signal.SIGKILL)
    program.kill()
    program.communicate()
    finish(curate(scene, corpus))

    assert drivers_killed >= 5
    assert contents(scene.work) == undisturbed
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(PARTITIONS)), "finished work was redone"
    assert_nothing_is_left(scene, shared_before)


def test_without_its_fork_server_a_run_fails_in_words_and_the_next_one_completes_it(scene, corpus, undisturbed):
    shared_before = shared_memory()
    program = curate(scene, corpus, hold=(20, scene.work / "run" / "ledger.jsonl"))
    wait_until(lambda: lines(scene) >= 20, what="20 ledger lines", program=program)
    [server] = descendants(program)[0]
    server.kill()
    _, errors = finish(program, expected=1)
    committed = lines(scene)
    finish(curate(scene, corpus))

    assert "the process that starts workers has ended unexpectedly; run again to resume" in errors
    assert contents(scene.work) == undisturbed
    assert 20 <= committed < PARTITIONS
    assert len(ledger(scene.work)) == PARTITIONS
    assert_nothing_is_left(scene, shared_before)


def test_a_killed_driver_takes_every_process_and_temporary_directory_with_it(scene, corpus):
    program = curate(scene, corpus)
    wait_until(lambda: descendants(program)[1], what="a worker")
    program.kill()
    program.communicate()

    wait_until(lambda: not scene.processes(), what="every process to end")
    assert list(scene.temporary.iterdir()) == []
