"""The loop of a worker: calls in order, but for those that were taken back before it came to them."""

import mmap
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from gristmill.engine.commands import Assignment, Care
from gristmill.engine.plan import Group
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import FileGroupTask, Task
from gristmill.worker import shared_memory
from gristmill.worker.channel import BufferedChannel, Channel
from gristmill.worker.job import RunSettings
from gristmill.worker.lane_loop import LaneLoop
from gristmill.worker.loop import CRUMB, HOLD_S, WorkerLoop, make_loop
from gristmill.worker.wire import pack, to_wire


class Pass(ProcessingStage[FileGroupTask, FileGroupTask]):
    def process(self, task):
        return task


class LongWhileRecalled(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Takes longer than results are held back; meanwhile the driver takes back task 2."""

    driver: BufferedChannel

    def process(self, task):
        self.driver.send([("recall", (2,))])
        self.driver.flush()
        began = time.perf_counter()
        while time.perf_counter() - began < 2 * HOLD_S:
            pass
        return task


def call(*numbers):
    parcel = pack(FileGroupTask("demo", ["a.jsonl"]))
    return (
        "call",
        [to_wire(Assignment(n, f"item-{n}", 0, Care.NORMAL, 0, (), "", 0), parcel) for n in numbers],
    )


def results(*messages, stage=None):
    """Run a worker through messages that are all there when it starts; return the tasks it finished."""
    return [number for kind, number in said(*messages, stage=stage) if kind == "done"]


def said(*messages, stage=None, deadline_s=None, lanes=1):
    """Run a worker through messages that are all there when it starts; return what it said of which task."""
    heard = heard_of((stage or Pass(),), *messages, deadline_s=deadline_s, lanes=lanes)
    return [message[:2] for message in heard if len(message) > 1]


def heard_of(stages, *messages, deadline_s=None, lanes=1):
    """Run a worker with these stages through messages; return all it said."""
    ours, theirs = socket.socketpair()
    driver = BufferedChannel(ours)
    for stage in stages:
        stage.driver = driver
    names = tuple(f"pass{number}" for number in range(len(stages)))
    group = Group(0, stages, names, 0, Resources(), 3, None, deadline_s, lanes=lanes)
    crumbs = mmap.mmap(-1, CRUMB.size * lanes)
    process = make_loop(Channel(theirs), group, RunSettings("", None, ""), crumbs, last=True)
    driver.send([*messages, ("drain", None)])
    driver.flush()
    with theirs:
        process.run()
    received, _ = driver.receive()
    driver.close()
    return [message for batch, _ in received for message in batch]


def test_calls_are_done_in_order():
    assert results(call(1, 2), call(3)) == [1, 2, 3]


def test_a_task_that_was_taken_back_is_skipped():
    assert results(call(1, 2), call(3), call(4, 5), ("recall", (3, 4))) == [1, 2, 5]


def test_a_recall_that_comes_too_late_is_of_no_consequence():
    assert results(("recall", (1,)), call(1)) == [1]


def test_a_task_that_was_taken_back_during_a_long_call_is_not_begun():
    assert results(call(1), call(2), call(3), stage=LongWhileRecalled()) == [1, 3]


class OneAtATime(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Fails on several tasks together and passes each of them alone."""

    name = "one_at_a_time"
    batch_size = 3

    def process_batch(self, tasks):
        if len(tasks) > 1:
            raise ValueError("not together")
        return tasks


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_worker_says_when_it_begins_another_call_where_a_call_has_a_deadline(monkeypatch, lanes):
    """The driver counts a deadline from the last thing it has heard: three calls must not share one."""
    monkeypatch.setattr("gristmill.worker.loop.STEP_S", 0.0)
    monkeypatch.setattr("gristmill.worker.lane_loop.STEP_S", 0.0)
    words = said(call(1, 2, 3), stage=OneAtATime(), deadline_s=60.0, lanes=lanes)

    assert words.count(("stepped", 1)) == 4  # all together, then one after the other
    assert [word for word in words if word[0] == "done"] == [("done", 1), ("done", 2), ("done", 3)]


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_worker_whose_stages_have_no_deadline_keeps_its_steps_to_itself(monkeypatch, lanes):
    monkeypatch.setattr("gristmill.worker.loop.STEP_S", 0.0)
    monkeypatch.setattr("gristmill.worker.lane_loop.STEP_S", 0.0)
    words = said(call(1, 2, 3), stage=OneAtATime(), lanes=lanes)

    assert [kind for kind, _ in words] == ["done"] * 3


class _InTime(Pass):
    deadline_s = 60.0


def test_a_worker_says_at_once_when_it_comes_to_a_stage_without_a_deadline_or_leaves_it():
    heard = heard_of((Pass(), _InTime(), Pass()), call(1), deadline_s=60.0)

    steps = [message for message in heard if message[0] == "stepped"]
    assert steps == [("stepped", 1, True), ("stepped", 1, False), ("stepped", 1, True)]


class Mute(Task[bytes]):
    """A task that does not say how much it holds."""

    num_items = 1


def test_no_task_is_free_of_charge():
    """The bound on memory counts what a task takes to send, where the task says nothing of its size."""
    worker = SimpleNamespace(blocks=shared_memory, _fds=[])
    for payload in (b"x" * 10_000, b"x" * 1_000_000):
        *_, num_bytes, _, _, size, _ = WorkerLoop._output(worker, 0, "item-0", Mute("d", payload))
        assert len(payload) < num_bytes == size < len(payload) + 2_000
    for fd in worker._fds:
        shared_memory.let_go(fd)
    assert len(worker._fds) == 1


class DeafChannel:
    """The driver's line to a worker, on which nothing can be understood."""

    def receive(self):
        raise OSError("not a message")

    def send(self, messages, fds=()):
        del messages, fds


@pytest.mark.timeout(30)
@pytest.mark.parametrize("waits", [LaneLoop.run, LaneLoop._receive])
def test_a_worker_with_lanes_that_cannot_hear_any_more_ends_instead_of_waiting(waits):
    group = Group(0, (Pass(),), ("pass",), 0, Resources(), 1, None, None, lanes=2)
    loop = LaneLoop(DeafChannel(), group, RunSettings("", None, ""), mmap.mmap(-1, CRUMB.size * 2), last=True)
    if waits is LaneLoop._receive:  # for credits, while a thread of its own listens
        threading.Thread(target=loop._listen, daemon=True).start()

    with pytest.raises(OSError, match="not a message"):
        waits(loop)
