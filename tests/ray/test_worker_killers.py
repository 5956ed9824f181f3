"""A document that ends its worker is quarantined: Ray Data repeats the task, the registrar understands.

Cosmos-Xenna does the same in rounds that take half a minute each; its rounds are tested in `unit/backends/xenna`.
"""

import json
import os

import pytest

from gristmill.backends.ray_data import RayDataExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

ROWS, KILLER = 10, 13

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
]


class EndsItsWorker(ProcessingStage):
    name = "ends_its_worker"

    def setup(self, worker_metadata=None):
        self.killer = KILLER

    def process(self, task):
        if self.killer in task.column("n").to_pylist():
            os._exit(7)
        return task


@pytest.mark.usefixtures("ray_cluster")
def test_a_document_that_ends_its_worker_is_found_and_the_others_are_written(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(3):
        lines = [json.dumps({"n": ROWS * file + row, "text": "x"}) for row in range(ROWS)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    stages = [JsonlReader(str(tmp_path / "in")), EndsItsWorker(), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("killers", stages=stages).run(RayDataExecutor({"cpus": 2}))
    record = json.loads(next((tmp_path / "out" / ".gristmill" / "quarantine").iterdir()).read_text())

    assert (result.read, result.written, result.quarantined) == (30, 29, 1)
    assert record["kind"] == "WorkerLost"
    assert json.loads(record["document"])["n"] == KILLER
    assert any("was lost while it processed" in message for message in result.messages)
