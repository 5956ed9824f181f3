"""Nodes come and go while a run lasts, workers die, the driver is killed: the output is as if nothing were amiss."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.jsonl_files import contents, write_documents
from tests.ray.gated import PARTITIONS, ROWS, closed_gate, notes, pipeline, small_pipeline
from tests.ray_cluster import NODE

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("gated")
    for part in range(PARTITIONS):
        documents = [{"id": f"{part}-{row}", "text": "word " * row} for row in range(ROWS)]
        write_documents(work / "in" / f"part-{part:02d}.jsonl", documents)
    (work / "expected-gate").mkdir()
    (work / "expected-gate" / "gate").touch()
    pipeline(work / "in", work / "expected", work / "expected-gate").run(LocalExecutor(num_workers=0))
    return work


class TakesANodeAway:
    """An observer: removes a node that has worked, adds another, and opens the gate when that one is at work."""

    def __init__(self, cluster, victim, gate, open_gate):
        self.cluster, self.victim, self.gate, self.open_gate = cluster, victim, gate, open_gate
        self.added = None
        self.messages = []

    def __call__(self, snapshot):
        self.messages += snapshot.messages
        seen = notes(self.gate)
        if self.added is None and "did" in seen.get(self.victim.node_id, ()):
            self.cluster.remove_node(self.victim, allow_graceful=False)
            self.added = self.cluster.add_node(**NODE)
        elif self.added is not None and self.added.node_id in seen:
            self.open_gate()  # again and again does no harm


def test_a_node_is_removed_and_another_joins(ray_cluster, work, tmp_path):
    victim, other = (ray_cluster.add_node(**NODE) for _ in range(2))
    ray_cluster.wait_for_nodes()
    gate = tmp_path / "gate"
    gate.mkdir()
    with closed_gate(gate) as open_gate:
        watcher = TakesANodeAway(ray_cluster, victim, gate, open_gate)
        executor = RayActorPoolExecutor(ignore_head_node=True)
        result = pipeline(work / "in", tmp_path / "out", gate).run(executor, observer=watcher)
    for node in (other, watcher.added):
        ray_cluster.remove_node(node)

    assert contents(tmp_path / "out") == contents(work / "expected")
    assert (result.read, result.written) == (PARTITIONS * ROWS,) * 2
    assert "did" in notes(gate)[watcher.added.node_id]
    assert any("is gone" in message for message in watcher.messages)
    assert any("has joined" in message for message in watcher.messages)


def test_after_kill_9_of_the_driver_the_rerun_completes_from_the_ledger(ray_cluster, work, tmp_path):
    gate, out, run = tmp_path / "gate", tmp_path / "out", tmp_path / "run"
    gate.mkdir()
    paths = [str(path) for path in (work / "in", out, gate, run)]
    with closed_gate(gate):
        command = [sys.executable, "-c", "import sys; from tests.ray.gated import main; main(*sys.argv[1:])", *paths]
        environment = {**os.environ, "RAY_ADDRESS": ray_cluster.address}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as driver:
            assert any(line.strip().isdigit() and int(line) >= 5 for line in driver.stdout)
            driver.send_signal(signal.SIGKILL)
        before = {path: path.stat().st_mtime_ns for path in out.glob("*.jsonl")}
    executor = RayActorPoolExecutor(show_progress=False)
    result = small_pipeline(work / "in", out, gate).run(executor, checkpoint_path=run)

    assert result.resumed
    assert (result.read, result.written) == (PARTITIONS * ROWS,) * 2
    assert contents(out) == contents(work / "expected")
    assert len(before) >= 5
    assert {path: path.stat().st_mtime_ns for path in before} == before


class DiesOf(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Kills its process at one document, whenever it sees it."""

    name = "dies_of"
    fusible = False

    def __init__(self, poison):
        self._poison = poison

    def process(self, task):
        if self._poison in task.column("id").to_pylist():
            os.kill(os.getpid(), signal.SIGKILL)
        return task


def test_a_document_that_kills_its_workers_is_quarantined_and_no_other(ray_cluster, work, tmp_path):
    stages = [JsonlReader(str(work / "in" / "part-0[0-3].jsonl")), DiesOf("2-7"), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("poison", stages=stages).run(RayActorPoolExecutor(show_progress=False))

    assert (result.read, result.written, result.quarantined) == (4 * ROWS, 4 * ROWS - 1, 1)
    (file,) = map(Path, result.quarantine_files)
    assert '"document_id":"2-7"' in file.read_text()
