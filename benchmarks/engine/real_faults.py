"""Rows B10 and B11 on processes: workers that are killed from outside, and documents that raise or end their worker."""

import math
import os
import random
import signal
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
from benchmarks.engine.outcome import Outcome, Row

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.runs.books import RunResult
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

WORKERS, TASKS, TASK_S, KILL_EVERY_S = 8, 800, 0.2, 1.0
BATCH, BATCHES, BAD_SHARE = 64, 160, 0.001


class _Nap(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "nap"
    fusible = False

    def process(self, task: DocumentBatch) -> DocumentBatch:
        time.sleep(TASK_S)
        return task


def _batch(texts: list[str]) -> DocumentBatch:
    return DocumentBatch("rows", pa.table({"text": texts}))


def _texts(result: RunResult) -> list[str]:
    return [text for task in result for text in task.to_pyarrow()["text"].to_pylist()]  # type: ignore[attr-defined]


@contextmanager
def _killer(killed: list[int]):  # type: ignore[no-untyped-def]
    """Kill a worker a second: a child of the process that forks them."""
    over = threading.Event()
    chance = random.Random(0)

    def strike() -> None:
        while not over.wait(KILL_EVERY_S):
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                servers = psutil.Process().children()
                workers = [worker.pid for server in servers for worker in server.children()]
                if workers:
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    killed.append(1)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _deaths() -> list[Outcome]:
    tasks = [_batch([f"document {i}"]) for i in range(TASKS)]
    executor = LocalExecutor(num_workers=WORKERS)
    pipeline = Pipeline("b10", stages=[_Nap(), _Nap().with_(name="doze")])
    calm = pipeline.run(executor, initial_tasks=tasks)
    killed: list[int] = []
    with _killer(killed):
        struck = pipeline.run(executor, initial_tasks=tasks)
    same = _texts(struck) == _texts(calm)
    found = struck.efficiency
    assert found is not None
    useful_s = 2 * TASKS * TASK_S
    wasted_s = found.shares["wasted"] / found.shares["useful"] * useful_s
    extra = max(0.0, wasted_s - len(killed) * TASK_S) / useful_s  # a kill costs one task at most
    return [
        Outcome(f"output after {len(killed)} kills", "as without", "the same" if same else "another", same),
        Outcome("wasted beyond one task a kill", "≤ 5 %", f"{extra:.1%}", extra <= 0.05),
    ]


@dataclass(kw_only=True)
class _Fragile(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Raises, or ends its process, at a bad document; notes every call in a file."""

    notes: str
    name: str = "fragile"

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = task.to_pyarrow()["text"].to_pylist()
        with Path(self.notes).open("a") as file:
            file.write(f"{task.task_id} {self.context.attempt}\n")
        if "fatal" in texts:
            os.kill(os.getpid(), signal.SIGKILL)
        if "poison" in texts:
            raise ValueError("poison")
        return task


def _bad_documents() -> list[Outcome]:
    outcomes = []
    for kind in ("poison", "fatal"):
        chance = random.Random(7)
        rows = [kind if chance.random() < BAD_SHARE else f"document {i}" for i in range(BATCH * BATCHES)]
        bad = rows.count(kind)
        tasks = [_batch(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
        with tempfile.TemporaryDirectory() as scratch:
            notes = Path(scratch) / "calls"
            stages = [_Fragile(notes=str(notes))]
            result = Pipeline("b11", stages=stages).run(LocalExecutor(num_workers=4), initial_tasks=tasks)
            calls = notes.read_text().splitlines()
        # Every call counts for what raises; a pass document by document counts once for what ends its worker.
        attempts = len(calls) if kind == "poison" else len({call.removesuffix("-probe") for call in calls})
        allowed = BATCHES + bad * (2 * math.log2(BATCH) + 2)
        good = [row for row in rows if row != kind]
        outcomes += [
            Outcome(f"{kind}: good documents", f"all {len(good):,}", f"{result.written:,}", _texts(result) == good),
            Outcome(f"{kind}: attempts", f"≤ {allowed:.0f}", str(attempts), attempts <= allowed, {"bad": bad}),
        ]
    return outcomes


ROWS = (
    Row("B10", "E", f"{WORKERS} sleepers, a worker killed every second", _deaths),
    Row("B11", "E", f"0.1 % bad documents in batches of {BATCH}: raising, then ending their worker", _bad_documents),
)
