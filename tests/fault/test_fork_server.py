"""The process that starts workers: killed, told to end, stopped, or refused another process by the system."""

import errno
import os
import select
import signal
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from tests.fault.processes import wait_until

from gristmill.backends.local import LocalExecutor
from gristmill.backends.local import process_pool as pool
from gristmill.backends.local.launch import launch
from gristmill.errors import Interrupted, MachineFailed, RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(90)]


def batch(*values):
    return DocumentBatch("b", pa.table({"n": list(values)}))


def numbers(result):
    return [n for task in result for n in task.to_pyarrow()["n"].to_pylist()]


def server_of_this_process():
    return next((c for c in psutil.Process().children() if "fork_server" in " ".join(c.cmdline())), None)


class UntilTold(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Returns when a file is there; cannot cope with one number."""

    name = "until_told"

    def __init__(self, path):
        self.path = str(path)

    def process(self, task):
        while not Path(self.path).exists():
            select.select([], [], [], 0.01)
        if 13 in task.column("n").to_pylist():
            raise ValueError("not thirteen")
        return task


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV], ids=lambda n: n.name)
def test_a_server_that_is_ended_in_a_run_without_a_directory_of_its_own_is_replaced(tmp_path, number):
    """The run's files are in a temporary directory, which a server removes only when the driver is gone."""
    ended = []

    def observe(snapshot):
        if not ended and any(stage.busy_workers for stage in snapshot.stages):
            ended.append(server_of_this_process().pid)
            os.kill(ended[0], number)
            (tmp_path / "go").touch()

    stage = UntilTold(tmp_path / "go")
    tasks = [batch(n) for n in (11, 12, 13, 14, 15)]
    result = Pipeline("p", stages=[stage]).run(LocalExecutor(num_workers=2), initial_tasks=tasks, observer=observe)

    assert ended
    assert numbers(result) == [11, 12, 14, 15]
    assert result.quarantined == 1  # which is written into that directory
    [message] = [message for message in result.messages if "starts workers" in message]
    assert f"the process that starts workers (process {ended[0]}) has ended: " in message
    assert "It is started again (1 of at most 3 times), and what its workers had is done again" in message


def test_a_server_that_is_killed_between_two_runs_is_replaced(tmp_path):
    (tmp_path / "go").touch()
    pipeline = Pipeline("p", stages=[UntilTold(tmp_path / "go")])
    with LocalExecutor(num_workers=1).kept_ready() as ready:
        first = pipeline.run(ready, initial_tasks=[batch(1)])
        server = server_of_this_process()
        server.kill()
        wait_until(lambda: server.status() == psutil.STATUS_ZOMBIE, what="the server to end")
        second = pipeline.run(ready, initial_tasks=[batch(2)])
        third = pipeline.run(ready, initial_tasks=[batch(3)])

    assert [numbers(result) for result in (first, second, third)] == [[1], [2], [3]]
    assert server_of_this_process() is None


def test_a_server_that_is_stopped_while_a_run_is_given_up_does_not_hold_up_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "AWAIT_S", 0.5)
    pipeline = Pipeline("p", stages=[UntilTold(tmp_path / "go")])

    stopped = []

    def give_up(snapshot):
        if not stopped and any(stage.busy_workers for stage in snapshot.stages):
            stopped.append(server_of_this_process().pid)
            os.kill(stopped[0], signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # however the tests were started
    try:
        with LocalExecutor(num_workers=1).kept_ready() as ready:
            with pytest.raises((Interrupted, KeyboardInterrupt)):
                pipeline.run(ready, initial_tasks=[batch(1)], observer=give_up)
            (tmp_path / "go").touch()
            assert numbers(pipeline.run(ready, initial_tasks=[batch(2)])) == [2]
    finally:
        signal.signal(signal.SIGINT, handler)
    assert server_of_this_process() is None


class NoMoreProcesses(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Makes the server's forks fail as they do where the system has no room, until there is a file."""

    name = "crowded"

    def __init__(self, refused, times):
        self.refused = str(refused)
        self.times = times

    def before_fork(self):
        fork = os.fork

        def refuse():
            with Path(self.refused).open("a+") as file:
                file.seek(0)
                if len(file.read()) < self.times:
                    file.write(".")
                    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            return fork()

        os.fork = refuse

    def process(self, task):
        return task


def test_a_refused_process_is_asked_for_again(tmp_path):
    stage = NoMoreProcesses(tmp_path / "refused", times=2)

    assert numbers(Pipeline("p", stages=[stage]).run(LocalExecutor(num_workers=1), initial_tasks=[batch(1)])) == [1]
    assert (tmp_path / "refused").read_text() == ".."


def test_a_machine_without_room_for_a_worker_is_named(tmp_path):
    stage = NoMoreProcesses(tmp_path / "refused", times=10**9)
    words = r"crowded: set-up failed 2 times: a worker cannot be started: .*temporarily unavailable: the system"
    with pytest.raises(RunFailed, match=words):
        Pipeline("p", stages=[stage]).run(LocalExecutor(num_workers=1), initial_tasks=[batch(1)])


def test_a_server_that_cannot_be_started_at_all_is_named(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(MachineFailed, match=r"the process that starts workers cannot be started: .*'/nowhere/python'"):
        launch()


class EndsItsServer(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ends the process that is to load it: a native library that crashes when it is imported does that."""

    name = "ends_its_server"

    def __init__(self, how):
        self.how = how

    def before_fork(self):
        if self.how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGSEGV)

    def process(self, task):
        return task


@pytest.mark.parametrize(("how", "words"), [("exit", "it ended with exit code 3"), ("crash", "killed by SIGSEGV")])
def test_a_stage_that_ends_the_server_every_time_is_named(how, words):
    named = rf"has ended 4 times \(the last time: {words} in before_fork of stage ends_its_server\)"
    with pytest.raises(RunFailed, match=named):
        Pipeline("p", stages=[EndsItsServer(how)]).run(LocalExecutor(num_workers=1), initial_tasks=[batch(1)])
