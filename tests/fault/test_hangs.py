"""Whatever does not return is named: the stage and the method, or the process, while it waits and without an end of it.

Every stage here hangs until somebody has said on standard error where it hangs, and then goes on; so every test also
shows that the watchdog only speaks.
"""

import os
import re
import select
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.tasks import DocumentBatch

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(90)]

WATCHDOG_S = 0.3
DEADLINE_S = 120.0


def hang(gate):
    """Wait for the file that the listener makes when it has heard the right words."""
    end = time.monotonic() + DEADLINE_S
    while not Path(gate).exists():
        if time.monotonic() > end:
            raise AssertionError(f"nobody has said within {DEADLINE_S} s where this hangs")
        select.select([], [], [], 0.01)


class Listener:
    """Standard error, until a line has all the words that are expected; then it lets the stage go on."""

    def __init__(self, words, release):
        self.words = words
        self.release = release
        self.said = ""
        self._line = ""

    def write(self, text):
        self.said += text
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if all(word in line for word in self.words):
                self.release(line)

    def flush(self):
        pass

    def isatty(self):
        return False


class Hangs(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Hangs in one method, which the test chooses."""

    name = "hangs"
    fusible = False
    adds_only_declared_columns = True

    def __init__(self, method, gate):
        self.method = method
        self.gate = str(gate)
        self.driver = os.getpid()
        if method == "process_batch":
            self.batch_size = 2

    def _enter(self, method):
        if method == self.__dict__.get("method"):
            hang(self.gate)

    def inputs(self):
        self._enter("inputs")
        return [], []

    def outputs(self):
        self._enter("outputs")
        return [], []

    def num_workers(self):
        self._enter("num_workers")
        return 1

    def output_directory(self):
        self._enter("output_directory")

    def __copy__(self):  # planning copies stages; that is not what is tested here
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self):
        self._enter("__getstate__")
        return dict(self.__dict__)

    def __setstate__(self, state):
        self.__dict__.update(state)
        if os.getpid() != self.driver:
            self._enter("__setstate__")

    def before_fork(self):
        self._enter("before_fork")

    def setup(self, worker_metadata=None):
        self._enter("setup")

    def process(self, task):
        self._enter("process")
        return self._stream(task) if self.method == "generator" else task

    def _stream(self, task):
        yield task
        self._enter("generator")

    def process_batch(self, tasks):
        self._enter("process_batch")
        return super().process_batch(tasks)

    def teardown(self):
        self._enter("teardown")


class KnowsItsColumns(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Columns are looked at in planning only where they are known."""

    name = "knows"

    def columns(self):
        return ["n"]

    def process(self, task):
        return task


class HangsInDecompose(CompositeStage[DocumentBatch, DocumentBatch]):
    name = "hangs"

    def __init__(self, gate):
        self.gate = str(gate)

    def decompose(self):
        hang(self.gate)
        return [Hangs("", self.gate)]


class HangsOnNode(Hangs):
    def setup_on_node(self, node_info=None, worker_metadata=None):
        self._enter("setup_on_node")


class HangsInPartitions(Hangs):
    def partitions(self):
        hang(self.gate)


def batch(*values):
    return DocumentBatch("b", pa.table({"n": list(values)}))


def run(stage, listener, monkeypatch, *, tasks=None, num_workers=1, executor=None, observer=None):
    """Run with standard error listened to; whatever comes in must come out once the hang has been named."""
    monkeypatch.setattr(sys, "stderr", listener)
    executor = executor or LocalExecutor(num_workers=num_workers, watchdog_s=WATCHDOG_S)
    pipeline = Pipeline("stuck", stages=[KnowsItsColumns(), stage])
    try:
        return pipeline.run(executor, initial_tasks=tasks or [batch(1, 2), batch(3)], observer=observer)
    finally:
        monkeypatch.undo()


PLANNING = "planning 'stuck' has taken"
HELD_UP = "the run of 'stuck' has been held up for"
NAMED = {
    "inputs": (PLANNING, "in inputs of stage hangs", "test_hangs.py"),
    "outputs": (PLANNING, "in outputs of stage hangs", "test_hangs.py"),
    "num_workers": (PLANNING, "in num_workers of stage hangs", "test_hangs.py"),
    "output_directory": (PLANNING, "in output_directory of stage hangs", "test_hangs.py"),
    "__getstate__": (HELD_UP, "in __getstate__ of stage hangs", "test_hangs.py"),
    "__setstate__": (" of hangs", "setting up", "loading the stages, at tests.fault.test_hangs.Hangs"),
    "before_fork": ("of hangs has been setting up", "is in before_fork of stage hangs"),
    "setup_on_node": (HELD_UP, "in setup_on_node of stage hangs (process "),
    "setup": ("worker ", "of hangs has been setting up for", "(in setup of stage hangs)"),
    "process": ("(process ", "busy with part-00000 for", "(in stage hangs, one of "),
    "generator": ("(process ", "busy with part-00000 for", "(in stage hangs, one of "),
    "process_batch": ("(process ", "busy with part-00000 for", "(in stage hangs, one of "),
    "teardown": ("worker ", "of hangs has been ending for", "(in teardown of stage hangs)"),
}


@pytest.mark.parametrize("method", NAMED)
def test_a_method_that_does_not_return_is_named_with_its_stage(tmp_path, monkeypatch, method):
    gate = tmp_path / "gate"
    listener = Listener(NAMED[method], lambda line: gate.touch())
    stage = HangsOnNode(method, gate) if method == "setup_on_node" else Hangs(method, gate)
    result = run(stage, listener, monkeypatch)

    assert gate.exists(), listener.said
    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == [1, 2, 3]


@pytest.mark.parametrize("method", ["setup", "process", "generator", "teardown"])
def test_it_is_named_where_everything_runs_in_this_process(tmp_path, monkeypatch, method):
    gate = tmp_path / "gate"
    entered = {"generator": "_stream"}.get(method, method)
    listener = Listener((HELD_UP, f"in {entered} of stage hangs"), lambda line: gate.touch())
    result = run(Hangs(method, gate), listener, monkeypatch, num_workers=0)

    assert gate.exists(), listener.said
    assert len(result) == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (HangsInDecompose, (PLANNING, "in decompose of stage hangs")),
        (lambda gate: HangsInPartitions("", gate), (PLANNING, "in partitions of stage hangs")),
    ],
    ids=["decompose", "partitions"],
)
def test_listing_what_there_is_to_do_is_watched(tmp_path, monkeypatch, make, words):
    gate = tmp_path / "gate"
    monkeypatch.setattr(sys, "stderr", Listener(words, lambda line: gate.touch()))
    Pipeline("stuck", stages=[make(gate)]).plan(LocalExecutor(watchdog_s=WATCHDOG_S))
    monkeypatch.undo()

    assert gate.exists()


BLOCKING_MODULE = """
import os
from tests.fault.test_hangs import Hangs, hang
if os.getpid() != THIS:
    hang(GATE)
class Innocent(Hangs):
    name = "innocent"
"""


def test_a_module_whose_import_blocks_in_a_new_process_is_named(tmp_path, monkeypatch):
    gate = tmp_path / "gate"
    (tmp_path / "blocking_module.py").write_text(
        BLOCKING_MODULE.replace("GATE", repr(str(gate))).replace("THIS", str(os.getpid()))
    )
    monkeypatch.syspath_prepend(tmp_path)
    from blocking_module import Innocent

    words = (" of innocent has been setting up for", "(process ", "is importing blocking_module")
    with pytest.MonkeyPatch.context() as patch:
        result = run(Innocent("", gate), Listener(words, lambda line: gate.touch()), patch)

    assert gate.exists()
    assert len(result) == 2


def go_on(line):
    """Do what the message says."""
    found = re.search(r"stopped by a signal or a debugger; kill -CONT (\d+) lets it go on", line)
    os.kill(int(found[1]), signal.SIGCONT)


class Stops(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Stops its own process, or that of its parent, as somebody with `kill -STOP` would."""

    name = "stops"
    fusible = False

    def __init__(self, method, whom):
        self.method = method
        self.whom = whom

    def setup(self, worker_metadata=None):
        self._stop("setup")

    def process(self, task):
        self._stop("process")
        return task

    def teardown(self):
        self._stop("teardown")

    def _stop(self, method):
        if method == self.method:
            os.kill(os.getpid() if self.whom == "worker" else os.getppid(), signal.SIGSTOP)


@pytest.mark.parametrize("method", ["setup", "process", "teardown"])
def test_a_worker_that_was_stopped_is_named_as_that(monkeypatch, method):
    words = ("(process ", "of stops has been", "its process is stopped by a signal or a debugger")
    result = run(Stops(method, "worker"), Listener(words, go_on), monkeypatch, tasks=[batch(1, 2)])

    assert len(result) == 1


def test_a_stopped_process_that_starts_workers_is_named_while_a_worker_ends(monkeypatch):
    words = ("has been ending for", "it is gone, but not given up: the process that starts workers", "is stopped")
    result = run(Stops("teardown", "server"), Listener(words, go_on), monkeypatch)

    assert len(result) == 2


def test_a_stopped_process_that_starts_workers_is_named_while_a_worker_should_start(tmp_path, monkeypatch):
    words = (" of hangs", "it has no process yet: the process that starts workers", "is stopped by a signal")
    with LocalExecutor(num_workers=1, watchdog_s=WATCHDOG_S).kept_ready() as ready:
        os.kill(ready._server.process.pid, signal.SIGSTOP)
        result = run(Hangs("", tmp_path), Listener(words, go_on), monkeypatch, executor=ready)

    assert len(result) == 2


def test_stages_larger_than_a_socket_do_not_make_the_driver_wait_for_a_stopped_server(tmp_path, monkeypatch):
    """The driver goes round and says what it waits for, however much it could not send."""
    words = (" of hangs", "it has no process yet: the process that starts workers", "is stopped by a signal")
    stage = Hangs("", tmp_path)
    stage.model = os.urandom(4 << 20)
    with LocalExecutor(num_workers=1, watchdog_s=WATCHDOG_S).kept_ready() as ready:
        os.kill(ready._server.process.pid, signal.SIGSTOP)
        result = run(stage, Listener(words, go_on), monkeypatch, executor=ready)

    assert len(result) == 2


def test_an_observer_that_does_not_return_is_named(tmp_path, monkeypatch):
    """Whoever holds up the driver is found on its stack: here the caller's own function, elsewhere a disk."""
    gate = tmp_path / "gate"
    listener = Listener((HELD_UP, "test_hangs.py", "(hang)"), lambda line: gate.touch())
    result = run(Hangs("", gate), listener, monkeypatch, observer=lambda snapshot: hang(gate))

    assert gate.exists(), listener.said
    assert len(result) == 2
