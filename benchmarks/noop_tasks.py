"""What a task costs that does nothing: 5,000 of them through three stages in processes of their own.

    python -m benchmarks.noop_tasks [--record]

Beside it the same with the standard library: three pools of two processes, tasks handed on as they come. Both include
the start of their processes.
"""

import multiprocessing
import statistics
import time

from benchmarks.record import header, record

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask

TASKS = 5_000
ROUNDS = 5


class _Pass(ProcessingStage[EmptyTask, EmptyTask]):
    fusible = False

    def process(self, task: EmptyTask) -> EmptyTask:
        return task


def main() -> None:
    """Run both in turn and print tasks a second."""
    began = header()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(TASKS / _gristmill())
        theirs.append(TASKS / _pools())
    result: dict[str, object] = {
        "tasks": TASKS,
        "gristmill_tasks_per_s": round(statistics.median(ours)),
        "multiprocessing_tasks_per_s": round(statistics.median(theirs)),
        "ratio": round(statistics.median(ours) / statistics.median(theirs), 2),
        "best_gristmill_tasks_per_s": round(max(ours)),
        "rounds": ROUNDS,
    }
    record("noop_tasks", began, result)


def _gristmill() -> float:
    tasks = [EmptyTask() for _ in range(TASKS)]
    started = time.perf_counter()
    result = Pipeline("noop", stages=[_Pass().with_(name=name) for name in "abc"]).run(
        LocalExecutor(), initial_tasks=tasks
    )
    elapsed = time.perf_counter() - started
    assert len(result) == TASKS
    return elapsed


def _same(task: EmptyTask) -> EmptyTask:
    return task


def _pools() -> float:
    tasks = [EmptyTask() for _ in range(TASKS)]
    context = multiprocessing.get_context("fork")
    started = time.perf_counter()
    with context.Pool(2) as a, context.Pool(2) as b, context.Pool(2) as c:
        first = a.imap_unordered(_same, tasks, chunksize=1)
        second = b.imap_unordered(_same, first, chunksize=1)
        count = sum(1 for _ in c.imap_unordered(_same, second, chunksize=1))
    elapsed = time.perf_counter() - started
    assert count == TASKS
    return elapsed


if __name__ == "__main__":
    main()
