"""A worker that hangs at the end of a run does not hold it up, if its stage may run twice."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch


class HangOnce(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Waits for ever with the first run of the last task, which leaves a mark for the second."""

    may_run_twice = True

    def __init__(self, mark):
        self.mark = mark

    def process(self, task):
        mark = Path(self.mark)
        if task.column("text").to_pylist() == ["t11"] and not mark.exists():
            mark.touch()
            threading.Event().wait()
        return task


@pytest.mark.slow
def test_the_second_run_of_a_task_that_hangs_gives_the_result(tmp_path):
    tasks = [DocumentBatch("b", pa.table({"text": [f"t{n}"]})) for n in range(12)]
    stage = HangOnce(str(tmp_path / "mark"))
    result = Pipeline("p", stages=[stage]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)

    assert [task.column("text").to_pylist() for task in result] == [[f"t{n}"] for n in range(12)]
    assert any("another worker was faster" in message for message in result.messages)
