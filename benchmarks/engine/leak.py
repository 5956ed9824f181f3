"""Row B12: a stage that keeps 10 MB of every task. Workers are replaced before they fill the machine, without a dip.

Four workers, 0.3 s a task. Throughput is counted in windows of ten seconds, from when all have started.
"""

import os
import time
from collections import Counter

from benchmarks.engine.outcome import Outcome, Row, at_least

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask

WORKERS, TASK_S, LEAK_BYTES = 4, 0.3, 10 << 20
TASKS = 880  # 66 s of work
WARM_UP_S, WINDOW_S = 3.0, 10.0


class _Leak(ProcessingStage[EmptyTask, EmptyTask]):
    name = "leak"

    def process(self, task: EmptyTask) -> EmptyTask:
        began = time.monotonic()
        vars(self).setdefault("kept", []).append(b"\1" * LEAK_BYTES)
        time.sleep(max(0.0, TASK_S - (time.monotonic() - began)))
        task._metadata["done"] = (time.time(), os.getpid())
        return task


def _measure() -> list[Outcome]:
    executor = LocalExecutor(num_workers=WORKERS, memory_limit="1.5GB", worker_restart_interval_m=0)
    done = Pipeline("b12", stages=[_Leak()]).run(executor, initial_tasks=[EmptyTask() for _ in range(TASKS)])
    ends = sorted(task._metadata["done"] for task in done)
    start = ends[0][0] + WARM_UP_S
    windows = Counter(int((at - start) // WINDOW_S) for at, _ in ends if at >= start)
    full = [windows[i] for i in range(max(windows))]  # the last one is cut short by the end
    processes = len({pid for _, pid in ends})
    return [
        at_least("worst 10 s / mean", min(full) / (sum(full) / len(full)), 0.95, windows=full),
        Outcome("workers replaced", f"≥ {WORKERS}", str(processes - WORKERS), processes >= 2 * WORKERS),
    ]


ROWS = (Row("B12", "E", "10 MB leaked a task, workers are recycled", _measure),)
