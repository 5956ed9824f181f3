"""It never hangs in silence, and importing it costs nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.tasks import DocumentBatch
from gristmill.worker import machine

pytestmark = pytest.mark.slow


def batch(*values):
    return DocumentBatch("b", pa.table({"n": list(values)}))


class WaitsToBeNoticed(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Stuck on one task until the watchdog has spoken, which the test writes into a file."""

    name = "waits_to_be_noticed"

    def __init__(self, noticed):
        self.noticed = str(noticed)

    def process(self, task):
        # A named pipe: opening it for reading ends when the test opens it for writing.
        with open(self.noticed) as gate:  # noqa: PTH123
            gate.read()
        return task


def test_the_watchdog_names_stage_worker_and_task(tmp_path):
    """A watchdog names the stage, the worker and the document that is stuck."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    heard = []

    def observe(snapshot):
        busy = [message for message in snapshot.messages if "busy with" in message]
        if busy and not heard:
            heard.extend(busy)
            gate.write_text("noticed")

    pipeline = Pipeline("stuck", stages=[WaitsToBeNoticed(gate)])
    executor = LocalExecutor(num_workers=1, watchdog_s=1.0)
    result = pipeline.run(executor, initial_tasks=[batch(1, 2)], observer=observe)

    assert len(result) == 1
    assert heard[0].startswith("worker 0 (process ")
    assert "of waits_to_be_noticed has been busy with part-00000 for " in heard[0]
    assert heard[0].endswith("(in stage waits_to_be_noticed, one of 2 documents)")
    assert heard[0] in result.messages


class StopsAtOneDocument(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Goes through texts as a user's stage does, and at one of them waits until the test opens a named pipe."""

    name = "stops_at_one_document"

    def __init__(self, gate):
        self.gate = str(gate)

    def process(self, task):
        for text in task.column("text").to_pylist():
            if "stop here" in text:
                Path(f"{self.gate}-reached").write_text(str(time.monotonic()))
                Path(self.gate).read_text()
        return task


@pytest.mark.timeout(180)
def test_a_document_at_which_a_stage_stands_still_is_named_within_45_seconds(tmp_path):
    """With the watchdog as it is by default: this takes 40 s by the clock, and nothing works meanwhile."""
    texts = ["please stop here" if n == 17 else f"text {n}" for n in range(40)]
    documents = [json.dumps({"id": f"doc-{n}", "text": text}) for n, text in enumerate(texts)]
    (tmp_path / "part-003.jsonl").write_text("\n".join(documents) + "\n")
    gate, heard = tmp_path / "gate", []
    os.mkfifo(gate)

    def observe(snapshot):
        busy = [message for message in snapshot.messages if "busy with" in message]
        if busy and not heard:
            heard.extend([time.monotonic(), *busy])
            gate.write_text("noticed")

    stages = [JsonlReader(str(tmp_path / "part-003.jsonl")), StopsAtOneDocument(gate)]
    result = Pipeline("sleepy", stages=stages).run(LocalExecutor(num_workers=1), observer=observe, quiet=True)

    assert sum(task.num_items for task in result) == len(texts)
    at, message = heard
    assert "of jsonl_reader…stops_at_one_document has been busy with part-003 for 4" in message
    assert message.endswith("(in stage stops_at_one_document, document doc-17 of part-003.jsonl:18)")
    assert at - float((tmp_path / "gate-reached").read_text()) <= 45


class DiesOnThirteen(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "dies_on_thirteen"

    def process(self, task):
        if 13 in task.column("n").to_pylist():
            os._exit(9)
        return task


@pytest.mark.fault
def test_a_document_that_kills_its_worker_is_found_and_the_others_are_processed():
    """A worker killed is reported as that, with its last document; every other document commits."""
    tasks = [batch(*range(start, start + 10)) for start in range(0, 30, 10)]
    result = Pipeline("dies", stages=[DiesOnThirteen()]).run(LocalExecutor(num_workers=1), initial_tasks=tasks)

    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == [n for n in range(30) if n != 13]
    assert result.quarantined == 1
    assert any("dies_on_thirteen" in message and "exit code 9" in message for message in result.messages)


class TakesTooMuch(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Is killed for one document as the system kills for memory, which counts such kills in a file."""

    name = "takes_too_much"

    def __init__(self, counted):
        self.counted = str(counted)

    def process(self, task):
        if 13 in task.column("n").to_pylist():
            counted = Path(self.counted)
            counted.write_text(f"oom_kill {int(counted.read_text().split()[1]) + 1}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return task


@pytest.mark.fault
def test_a_worker_killed_for_memory_is_reported_as_that_with_its_last_document(tmp_path, monkeypatch):
    counted = tmp_path / "memory.events"
    counted.write_text("oom_kill 7\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    pipeline = Pipeline("large", stages=[TakesTooMuch(counted)])
    result = pipeline.run(LocalExecutor(num_workers=1, memory_limit="8GB"), initial_tasks=[batch(11, 12, 13, 14)])

    assert result[0].to_pyarrow()["n"].to_pylist() == [11, 12, 14]
    words = "ended: killed by the system because memory ran out (in stage takes_too_much, document 2)"
    assert any(words in message for message in result.messages)


class NeverEnds(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "never_ends"
    deadline_s = 0.6

    def process(self, task):
        if 3 in task.column("n").to_pylist():
            import threading

            threading.Event().wait()
        return task


@pytest.mark.fault
def test_a_call_beyond_its_deadline_is_ended_and_its_document_quarantined():
    """It never hangs: a document past the stage's deadline costs that document only."""
    result = Pipeline("ends", stages=[NeverEnds()]).run(LocalExecutor(num_workers=1), initial_tasks=[batch(1, 2, 3, 4)])

    assert result[0].to_pyarrow()["n"].to_pylist() == [1, 2, 4]
    assert result.quarantined == 1
    assert any("deadline of 0.6 s" in message for message in result.messages)


LIGHT = """
import sys
import gristmill, gristmill.pipeline, gristmill.backends.local
from gristmill.stages.text.io import JsonlReader, JsonlWriter
import threading
heavy = {"pandas", "ray", "torch", "rich", "typer", "fsspec", "yaml", "psutil"} & set(sys.modules)
print(sorted(heavy), threading.active_count())
"""


def test_importing_starts_nothing_and_needs_neither_ray_nor_torch():
    """Importing gristmill starts nothing and needs neither Ray nor torch."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)

    assert done.stdout == "[] 1\n"
