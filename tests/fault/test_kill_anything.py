"""`kill -9` of anything, at any moment, then the same command again: the output is as if nothing had happened."""

import contextlib
import random
import signal

import psutil
import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run
from tests.fault.hold import held, hold_until
from tests.fault.processes import finish, pause, wait_until
from tests.fault.traces import contents, ledger, report, shared_memory, temporary_files

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 204
SMALL = 60  # partitions, where the number of processes matters and not that of documents
LATEST = 30  # of them: commits come in lots, and the run must not have ended before it is seen to be held
KILLS = 50
AT_ONE_DOCUMENT = 2 + 6  # kills of its workers: twice before its task is taken apart, then one less than would blame it
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
    found = everything(work)
    assert {name.partition("/")[0] for name in found} == {"out", "rejects", "run"}
    return found


def everything(work):
    """What a run has published, and what its report says about documents."""
    return contents(work) | report(work)


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
    assert scene.left_behind() == []
    assert shared_memory() <= shared_before


@pytest.mark.timeout(900)  # two minutes where thirty others want the cores; a guard against hanging
def test_kills_of_workers_and_drivers_change_nothing(scene, corpus, undisturbed):
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

    assert drivers_killed >= 2
    assert everything(scene.work) == undisturbed
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(PARTITIONS)), "finished work was redone"
    assert_nothing_is_left(scene, shared_before)


def test_a_document_at_which_workers_are_killed_again_and_again_is_kept(scene, tmp_path):
    """Every worker is killed in the middle of the same document, which does nothing but take its time."""
    work = tmp_path / "undisturbed"
    make_corpus(work / "raw", 1)
    run(work / "raw", work, work_ms=WORK_MS)
    limit, watched = scene.work / "limit", scene.work / "lines"
    hold_until(limit, 0)
    watched.touch()
    program = curate(scene, work / "raw", hold=(limit, watched))
    killed = set()
    for number in range(AT_ONE_DOCUMENT):
        victim = wait_until(
            lambda: held(watched) not in {None, *killed} and held(watched), what=f"worker {number}", program=program
        )
        psutil.Process(victim).send_signal(signal.SIGKILL)
        killed.add(victim)
    hold_until(limit, 1)
    finish(program)

    assert everything(scene.work) == everything(work)


class ServerKiller:
    """Lets a program come so far, and kills its fork server there."""

    def __init__(self, scene, corpus, first):
        self.scene = scene
        self.limit = scene.work / "limit"
        hold_until(self.limit, first)
        self.program = curate(scene, corpus, hold=(self.limit, scene.work / "run" / "ledger.jsonl"))
        self.killed = set()

    def kill(self, due, *, pause_s, then):
        """Kill the server when the ledger has `due` lines, and let the program go on until it has `then`."""
        wait_until(lambda: lines(self.scene) >= due, what=f"{due} ledger lines", program=self.program)
        server = wait_until(self._server, what="a fork server", program=self.program)
        pause(pause_s)
        server.kill()
        self.killed.add(server.pid)
        hold_until(self.limit, then)

    def _server(self):
        with contextlib.suppress(psutil.Error):
            for process in descendants(self.program)[0]:
                if process.pid not in self.killed and "fork_server" in " ".join(process.cmdline()):
                    return process
        return None


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small corpus, and what comes of it if nobody disturbs the run."""
    work = tmp_path_factory.mktemp("small")
    make_corpus(work / "raw", SMALL)
    run(work / "raw", work, work_ms=WORK_MS)
    return work / "raw", everything(work)


@pytest.mark.parametrize("seed", range(4))
def test_a_run_whose_fork_server_is_killed_three_times_finishes_by_itself(scene, small, seed):
    """Twelve moments in four runs: as the server starts, as it loads, and between any two partitions."""
    corpus, undisturbed = small
    shared_before = shared_memory()
    moments = random.Random(seed)
    due = [0, *sorted(moments.sample(range(1, LATEST), 2))]
    killer = ServerKiller(scene, corpus, first=due[0])
    for now, then in zip(due, [*due[1:], 10**9], strict=True):
        killer.kill(now, pause_s=moments.uniform(0, 0.5 if now == 0 else 0.05), then=then)
    finish(killer.program)

    assert len(killer.killed) == 3
    assert everything(scene.work) == undisturbed
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(SMALL)), "finished work was redone"
    assert_nothing_is_left(scene, shared_before)


def test_a_run_whose_fork_server_is_killed_four_times_fails_in_words_and_the_next_completes_it(scene, small):
    corpus, undisturbed = small
    killer = ServerKiller(scene, corpus, first=5)
    for _ in range(4):
        killer.kill(5, pause_s=0.02, then=5)
    _, errors = finish(killer.program, expected=1)
    committed = lines(scene)
    finish(curate(scene, corpus))

    assert "the process that starts workers has ended 4 times (the last time: killed by SIGKILL" in errors
    assert "the same command continues the run" in errors
    assert everything(scene.work) == undisturbed
    assert 5 <= committed < SMALL
    assert len(ledger(scene.work)) == SMALL


def test_a_killed_driver_takes_every_process_and_temporary_directory_with_it(scene, corpus):
    program = curate(scene, corpus)
    wait_until(lambda: descendants(program)[1], what="a worker")
    program.kill()
    program.communicate()

    wait_until(lambda: not scene.processes(), what="every process to end")
    assert scene.left_behind() == []
