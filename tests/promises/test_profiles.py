"""The second run of a pipeline knows what the first has measured, and gives the same output."""

from pathlib import Path

import pyarrow as pa

from gristmill.backends.local import LocalExecutor
from gristmill.backends.scheduled.kept_records import ProfileStore
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch


class Shout(ProcessingStage[DocumentBatch, DocumentBatch]):
    fusible = False

    def process(self, task):
        return task.with_column("text", pa.array([text.upper() for text in task.column("text").to_pylist()]))


class Stress(Shout):
    def process(self, task):
        return task.with_column("text", pa.array([f"{text}!" for text in task.column("text").to_pylist()]))


def run():
    tasks = [DocumentBatch("b", pa.table({"text": [f"t{n}"]})) for n in range(12)]
    result = Pipeline("p", stages=[Shout(), Stress()]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)
    return [text for task in result for text in task.column("text").to_pylist()]


def test_a_run_leaves_profiles_for_the_next_which_gives_the_same_output(tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path))
    first = run()
    found = ProfileStore(tmp_path / "profiles.json").read()

    assert len(found) == 2
    assert run() == first == [f"T{n}!" for n in range(12)]


def test_a_cache_that_cannot_be_used_stops_nothing(tmp_path, monkeypatch):
    Path(tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path / "file"))

    assert len(run()) == 12
