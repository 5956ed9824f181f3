"""Pipelines that tell where they run and stop at a gate, for tests that take nodes away while they do.

The gate is a lock of the file system: a task waits in the kernel until the test lets go of it.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

PARTITIONS, ROWS = 40, 30
FREE = 14  # tasks that pass before the gate: enough for the planner to have measured its stages


def here():
    """The Ray node of this process."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else "no node"


def note(directory, word):
    """Leave a word in the file of this node."""
    with (Path(directory) / here()).open("a") as notes:
        notes.write(f"{word}\n")


def padded(task):
    import pyarrow as pa

    return task.with_column("padding", pa.array(["x" * 10_000] * task.num_items))


class Pads(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Makes documents large, so that their data lies in the object store of a node, and goes to other workers."""

    name = "pads"

    def __init__(self, directory):
        self._directory = str(directory)

    def process(self, task):
        note(self._directory, "did")
        return padded(task)


class Gate(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Notes in a file of its node what it does, and lets a few tasks pass while the gate is held."""

    name = "gate"
    batch_size = 2  # so it is not fused with what comes before
    free = FREE

    def __init__(self, directory):
        self._directory = str(directory)

    def setup(self, worker_metadata=None):
        note(self._directory, "ready")

    def process(self, task):
        passed = os.open(f"{self._directory}/passed", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.write(passed, b".")
        size = os.fstat(passed).st_size
        os.close(passed)
        if size > self.free:
            with (Path(self._directory) / "gate").open() as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)
        note(self._directory, "did")
        return task


@contextlib.contextmanager
def closed_gate(directory):
    """Hold the gate; the value opens it."""
    with (directory / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(gate, fcntl.LOCK_UN)


def notes(directory):
    """What happened where: node id to the words noted there."""
    files = [path for path in directory.iterdir() if path.name not in ("gate", "passed")]
    return {path.name: path.read_text().split() for path in files}


def pipeline(corpus, out, gate):
    stages = [JsonlReader(str(corpus), files_per_partition=1), Pads(gate), Gate(gate), JsonlWriter(str(out))]
    return Pipeline("gated", stages=stages)


def small_pipeline(corpus, out, gate):
    """The same with one worker for each stage, where it does not matter how many there are."""
    stages = pipeline(corpus, out, gate).stages
    return Pipeline("gated", stages=[stage.with_(num_workers=1) for stage in stages])


def main(corpus, out, gate, run):
    """Run on the cluster of RAY_ADDRESS, telling on standard output how far it is."""
    executor = RayActorPoolExecutor(show_progress=False)
    told = lambda snapshot: print(snapshot.partitions_done, flush=True)  # noqa: E731
    small_pipeline(corpus, out, gate).run(executor, checkpoint_path=run, observer=told)
