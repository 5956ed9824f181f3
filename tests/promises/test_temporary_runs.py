"""A pipeline that writes nothing leaves nothing behind, and gives its tasks all the same."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow


class RefusesThree(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "refuses_three"

    def process(self, task):
        if 3 in task.column("n").to_pylist():
            raise ValueError("three")
        return task


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_without_writer_needs_no_directory_and_leaves_none(workers, tmp_path, monkeypatch):
    """Nothing outlives a run: no temporary file, no run directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pipeline = Pipeline("p", stages=[RefusesThree()])
    tasks = [DocumentBatch("b", pa.table({"n": [start, start + 1]})) for start in range(0, 8, 2)]
    result = pipeline.run(LocalExecutor(num_workers=workers), initial_tasks=tasks)

    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == [0, 1, 2, 4, 5, 6, 7]
    assert (result.quarantined, result.run_dir) == (1, None)
    assert list(Path(tmp_path).iterdir()) == []
