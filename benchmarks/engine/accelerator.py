"""Suite row B15: a scarce accelerator between two stages on the processor must never wait.

    python -m benchmarks.engine.accelerator [--record]

200 tasks: 0.05 s of processor, 0.1 s of the accelerator (which is pretended: it waits), 0.05 s of processor. Busy share
is counted between the accelerator's first and last task; the goal is 99 %, and the first output within 0.5 s.
"""

import time

from benchmarks.engine.outcome import Outcome, Row, at_least
from benchmarks.record import header, record

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import EmptyTask

TASKS = 200
PROCESSOR_S = 0.05
ACCELERATOR_S = 0.1


class _Work(ProcessingStage[EmptyTask, EmptyTask]):
    def process(self, task: EmptyTask) -> EmptyTask:
        began = time.process_time()
        while time.process_time() - began < PROCESSOR_S:
            pass
        task._metadata[self.stage_name()] = time.time()
        return task


class _Accelerate(ProcessingStage[EmptyTask, EmptyTask]):
    name = "accelerate"
    resources = Resources(cpus=0, gpus=1)

    def process(self, task: EmptyTask) -> EmptyTask:
        began = time.time()
        time.sleep(ACCELERATOR_S)
        task._metadata["used"] = (began, time.time())
        return task


def measure() -> dict[str, object]:
    """Run it once: busy share and time to the first output."""
    stages = [_Work().with_(name="prepare"), _Accelerate(), _Work().with_(name="finish")]
    tasks = [EmptyTask() for _ in range(TASKS)]
    started = time.time()
    done = Pipeline("b15", stages=stages).run(LocalExecutor(gpus=1), initial_tasks=tasks)
    wall_s = time.time() - started
    used: list[tuple[float, float]] = sorted(task._metadata["used"] for task in done)
    span = max(end for _, end in used) - used[0][0]
    first: float = min(task._metadata["finish"] for task in done)
    return {
        "tasks": TASKS,
        "accelerator_busy_share": round(sum(end - began for began, end in used) / span, 4),
        "first_output_s": round(first - started, 3),
        "wall_s": round(wall_s, 2),
        "least_possible_s": round(TASKS * ACCELERATOR_S + 2 * PROCESSOR_S, 2),
    }


def _outcomes() -> list[Outcome]:
    result = measure()
    busy = result["accelerator_busy_share"]
    assert isinstance(busy, float)
    return [at_least("accelerator busy", busy, 0.99, **result)]


ROWS = (Row("B15", "E", "CPU 0.05 s → one accelerator 0.1 s → CPU 0.05 s, 200 tasks", _outcomes),)


if __name__ == "__main__":
    record("accelerator", header(), measure())
