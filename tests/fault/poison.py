"""Stages that single documents break in every way a document can break one, and the pipeline the tests run them in."""

import ctypes
import os
import signal
import threading
from pathlib import Path

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch, Task


def _fall_for_ever(depth):
    return _fall_for_ever(depth + 1) + 1


def _raise():
    raise ValueError("this document is bad")


WAYS = {
    "raise": _raise,
    "exit": lambda: os._exit(7),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "recurse": lambda: _fall_for_ever(0),
    "hang": threading.Event().wait,
}


class Break(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Does to itself what a document's field `do` says."""

    name = "break"

    def process(self, task):
        for do in task.column("do").to_pylist():
            if do in WAYS:
                WAYS[do]()
        return task


class BreakInTime(Break):
    """The same, with a deadline for a call."""

    name = "break_in_time"
    deadline_s = 1.5


class BreakSlowly(BreakInTime):
    """A whole batch takes more than half of the deadline, so it cannot be done twice within it."""

    name = "break_slowly"
    deadline_s = 2.0

    def process(self, task):
        # Like a request that takes its time: a busy machine must not make it slower.
        threading.Event().wait(0.6 * self.deadline_s * task.num_items / 40)
        return super().process(task)


class Flaky(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A server that is away the first time it is asked."""

    name = "flaky"
    transient_errors = (ConnectionError,)

    def __init__(self, memory):
        self.memory = str(memory)

    def process(self, task):
        asked = Path(self.memory) / f"{task.task_id}"
        if not asked.exists():
            asked.touch()
            raise ConnectionError("the server is away")
        return task


class Numbers(Task):
    """A task that is no batch of documents."""

    @property
    def num_items(self):
        return len(self.data)

    def validate(self):
        return True


class Halve(ProcessingStage[Numbers, Numbers]):
    name = "halve"

    def process(self, task):
        if 13 in task.data:
            raise ArithmeticError("thirteen has no half")
        if 99 in task.data:
            os._exit(3)
        return Numbers("numbers", [number / 2 for number in task.data])


class Compare(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Looks at a batch as a whole, so no document of it can be blamed."""

    name = "compare"
    rows_are_independent = False

    def process(self, task):
        if "raise" in task.column("do").to_pylist():
            raise ValueError("the batch does not add up")
        return task


def run(source, work, stage=None, *, workers=2, **options):
    stages = [JsonlReader(file_paths=str(source)), stage or Break(), JsonlWriter(path=f"{work}/out")]
    executor = LocalExecutor(num_workers=workers)
    return Pipeline("poison", stages=stages).run(executor, checkpoint_path=f"{work}/run", **options)
