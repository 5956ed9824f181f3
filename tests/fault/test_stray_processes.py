"""Processes that stages start: they neither hold up a run, nor work in its name, nor outlive it."""

import contextlib
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from tests.fault.processes import finish, wait_until
from tests.fault.test_fork_server import UntilTold

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 4


def batch(*values):
    return DocumentBatch("b", pa.table({"n": list(values)}))


def sleep_for_ever(path=None):
    if path is not None:
        with Path(path).open("a") as file:
            file.write(f"{os.getpid()}\n")
    while True:
        select.select([], [], [], 60)


class Stray(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Starts a process in one of its methods, in one of several ways, and leaves it."""

    name = "stray"

    def __init__(self, how, where, pids):
        self.how = how
        self.where = where
        self.pids = str(pids)

    def setup(self, worker_metadata=None):
        self._start("setup")

    def process(self, task):
        self._start("process")
        return task

    def teardown(self):
        self._start("teardown")

    def _start(self, method):
        if method == self.where:
            getattr(self, f"_{self.how}")()

    def _fork(self):
        if os.fork() == 0:
            sleep_for_ever(self.pids)

    def _fork_that_returns(self):
        if os.fork() == 0:
            Path(self.pids).touch()

    def _fork_that_raises(self):
        if os.fork() == 0:
            raise SystemExit(0)

    def _pool(self):
        self.children = [multiprocessing.get_context("fork").Process(target=sleep_for_ever, args=(self.pids,))]
        self.children[0].start()

    def _command(self):
        code = f"import os, time; open({self.pids!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(1000)"
        subprocess.Popen([sys.executable, "-c", code])


def alive(pids):
    found = []
    for line in Path(pids).read_text().split() if Path(pids).exists() else ():
        with contextlib.suppress(psutil.Error):
            if psutil.Process(int(line)).status() != psutil.STATUS_ZOMBIE:
                found.append(int(line))
    return found


@pytest.mark.parametrize("where", ["setup", "process", "teardown"])
@pytest.mark.parametrize("how", ["fork", "fork_that_returns", "fork_that_raises", "pool", "command"])
def test_a_process_a_stage_leaves_behind_neither_holds_up_the_run_nor_outlives_it(tmp_path, how, where):
    pids = tmp_path / "pids"
    tasks = [batch(2 * n, 2 * n + 1) for n in range(PARTITIONS)]
    result = Pipeline("stray", stages=[Stray(how, where, pids)]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)

    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == list(range(2 * PARTITIONS))
    assert result.quarantined == 0
    wait_until(lambda: not alive(pids), what="what the stage has started to end", deadline_s=10)


class StrayWriter(Stray):
    """Forks; the child comes back at once, as if it were the worker, and the parent when the child has ended."""

    name = "stray_writer"

    def process(self, task):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return task


def test_a_forked_child_that_comes_back_writes_nothing(tmp_path, capfd):
    from gristmill.stages.text.io import JsonlReader, JsonlWriter

    source = tmp_path / "in"
    source.mkdir()
    for part in range(3):
        (source / f"{part}.jsonl").write_text("".join(json.dumps({"text": f"{part}-{n}"}) + "\n" for n in range(50)))
    stages = [JsonlReader(str(source)), StrayWriter("", "", ""), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("stray", stages=stages).run(LocalExecutor(num_workers=2), checkpoint_path=tmp_path / "run")

    assert (result.read, result.written) == (150, 150)
    written = "".join(path.read_text() for path in (tmp_path / "out").glob("*.jsonl"))
    texts = [json.loads(line)["text"] for line in written.splitlines()]
    assert sorted(texts) == sorted(f"{part}-{n}" for part in range(3) for n in range(50))
    words = "stray_writer: a process it forked came back from process() and is ended; end it there with os._exit()"
    assert words in capfd.readouterr().err


PROGRAM = """
import sys
from tests.fault.test_stray_processes import Stray, batch
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
Pipeline("stray", stages=[Stray("fork", "process", sys.argv[1])]).run(LocalExecutor(num_workers=1), [batch(1)])
print("done")
"""


def test_whoever_reads_what_a_program_prints_does_not_wait_for_what_its_stages_left(scene):
    """The pipe to the reader is inherited by every process, and is at its end when the last of them has ended."""
    program = scene.start("-c", PROGRAM, scene.work / "pids")

    assert finish(program)[0] == "done\n"


def test_a_killed_server_leaves_no_process_of_a_stage(tmp_path):
    """Its workers die with it by the kernel's hand, but what they have started does not."""
    pids = tmp_path / "pids"

    def kill_server(_):
        for child in psutil.Process().children() if alive(pids) and not killed else ():
            if "fork_server" in " ".join(child.cmdline()):
                killed.append(list(alive(pids)))
                child.send_signal(signal.SIGKILL)

    killed = []
    stages = [Stray("fork", "setup", pids), UntilTold(tmp_path / "go")]
    executor = LocalExecutor(num_workers=1)

    def observe(snapshot):
        kill_server(snapshot)
        if killed and not set(killed[0]) & set(alive(pids)):
            (tmp_path / "go").touch()

    result = Pipeline("stray", stages=stages).run(executor, initial_tasks=[batch(1)], observer=observe)

    assert len(result) == 1
    [message] = [message for message in result.messages if "starts workers" in message]
    assert "has ended: killed by SIGKILL. It is started again (1 of at most 3 times)" in message
    wait_until(lambda: not alive(pids), what="what the stage has started to end", deadline_s=10)
