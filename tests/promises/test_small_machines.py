"""Any number of stages run on one core, and text never travels between processes."""

import pyarrow as pa
import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.backends.local.process_pool import ProcessPool
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch, FileGroupTask
from gristmill.worker import shared_memory

pytestmark = pytest.mark.slow


class CountsItself(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Leaves the data alone: arithmetic with Arrow imports pandas, and here that would be in forty processes."""

    def process(self, task):
        task._metadata["stages"] = task._metadata.get("stages", 0) + 1
        return task


class CountsItselfApart(CountsItself):
    fusible = False


@pytest.mark.parametrize(("kind", "groups"), [(CountsItself, 1), (CountsItselfApart, 40)])
def test_forty_stages_run_on_one_worker(kind, groups):
    """Any number of stages run on one core; a laptop is enough."""
    pipeline = Pipeline("forty", stages=[kind() for _ in range(40)])
    tasks = [DocumentBatch("b", pa.table({"n": [start, start + 1]})) for start in range(0, 20, 2)]
    result = pipeline.run(LocalExecutor(num_workers=1), initial_tasks=tasks)

    assert len(pipeline.plan(initial_tasks=tasks).groups) == groups
    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == list(range(20))
    assert [task._metadata["stages"] for task in result] == [40] * 10
    assert (result.read, result.written, result.dropped_total) == (20, 20, 0)


def test_a_text_pipeline_moves_descriptors_only(tmp_path, monkeypatch):
    """Text pipelines move no data between processes: one fused group; only names of files pass the driver."""
    for part in range(3):
        write_documents(tmp_path / "in" / f"{part}.jsonl", [{"text": "word " * 500}] * 200)  # 500 kB each
    stages = [JsonlReader(str(tmp_path / "in")), *(ScoreFilter(WordCountFilter()) for _ in range(3))]
    pipeline = Pipeline("text", stages=[*stages, JsonlWriter(str(tmp_path / "out"))])
    received = record_received(monkeypatch)
    blocks = record_blocks(monkeypatch)
    result = pipeline.run(LocalExecutor(num_workers=2))

    assert len(pipeline.plan().groups) == 1
    assert result.written == 600
    assert len(received) == 3
    assert sum(received) < 20_000
    assert {size for size in blocks if size > 1000} == set()  # what is smaller says where a worker is


def record_received(monkeypatch):
    """Sizes of all task payloads workers sent to the driver."""
    sizes = []
    hear = ProcessPool._hear_worker

    def listen(self, number):
        events = hear(self, number)
        parcels = [self._shelf.look(o.payload) for e in events for o in getattr(e, "outputs", ())]
        sizes.extend(parcel.size + len(parcel.header) for parcel in parcels)
        return events

    monkeypatch.setattr(ProcessPool, "_hear_worker", listen)
    return sizes


def record_blocks(monkeypatch):
    """Sizes of all shared memory blocks the driver made; it makes small ones for the crumbs of each worker."""
    sizes = []
    create = shared_memory.create

    def record(size, fill):
        sizes.append(size)
        return create(size, fill)

    monkeypatch.setattr(shared_memory, "create", record)
    return sizes


def test_final_tasks_of_a_writer_are_the_files_written(tmp_path):
    """The driver holds descriptors only."""
    write_documents(tmp_path / "in" / "a.jsonl", [{"text": "a"}])
    stages = [JsonlReader(str(tmp_path / "in")), JsonlWriter(str(tmp_path / "out"))]
    (task,) = Pipeline("p", stages=stages).run(LocalExecutor(num_workers=1))

    assert isinstance(task, FileGroupTask)
    assert task.data == [str(tmp_path / "out" / "a.jsonl")]
