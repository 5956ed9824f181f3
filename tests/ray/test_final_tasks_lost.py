"""Final tasks that lay on a node which went, before anybody had them, are made again: all of them, once, in order."""

from itertools import pairwise

import pytest
from tests.jsonl_files import write_documents
from tests.ray.gated import Gate, closed_gate, notes, padded
from tests.ray_cluster import NODE

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_actor_pool.actor import MESSAGE_BYTES, in_a_call
from gristmill.backends.scheduled.kept_records import FILE_NAME, read_frames
from gristmill.engine.event_log import decode_events
from gristmill.engine.events import NodeLost, OutputsLost, Ticked
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.tasks import DocumentBatch

FILES, PIECES, ROWS = 3, 3, 30
LOOKS_S = 8.0  # less than Ray looks for an object that is gone, while the driver that asked for it stands still

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
]


class IntoPieces(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Makes several tasks of one, so that a partition has some final tasks while others are still under way.

    It runs on the head: had the node that is to go made what is still under way, that alone would have it made again.
    """

    name = "into_pieces"
    resources = Resources(cpus=2)  # more than the other nodes have

    def process(self, task):
        table = task.to_pyarrow()
        return [task.with_data(table.slice(piece * ROWS, ROWS)) for piece in range(PIECES)]


class Final(Gate):
    """Lets the first partition pass the gate, and one task of the second; what comes out is large."""

    name = "final"
    batch_size = 1
    resources = Resources(gpus=1)  # the head has none
    free = PIECES + 1

    def process(self, task):
        return padded(super().process(task))


class TakesFinalTasksAway:
    """An observer: removes the node on which final tasks lie, and opens the gate when the run has noticed."""

    def __init__(self, cluster, nodes, gate, open_gate):
        self.cluster, self.nodes, self.gate, self.open_gate = cluster, nodes, gate, open_gate
        self.victim = None

    def __call__(self, snapshot):
        if self.victim is None and snapshot.stages[-1].documents_out == Final.free * ROWS:
            (self.victim,) = (node for node in self.nodes if "did" in notes(self.gate).get(node.node_id, ()))
            self.cluster.remove_node(self.victim, allow_graceful=False)
            self.nodes.remove(self.victim)
        elif any("is gone" in message for message in snapshot.messages):
            self.open_gate()


def recorded_events(run):
    with (run / FILE_NAME).open("rb") as log:
        _, *frames = read_frames(log)
        return [event for frame in frames for event in decode_events(frame.body)]


def pipeline(corpus, gate):
    stages = [JsonlReader(str(corpus), files_per_partition=1), IntoPieces(), Final(gate).with_(num_workers=1)]
    return Pipeline("finals", stages=stages)


def test_final_tasks_that_went_with_their_node_are_made_again(ray_cluster, tmp_path):
    for file in range(FILES):
        documents = [{"id": f"{file}-{row}", "text": "word"} for row in range(PIECES * ROWS)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    gate, run = tmp_path / "gate", tmp_path / "run"
    gate.mkdir()
    nodes = [ray_cluster.add_node(**NODE, num_gpus=1) for _ in range(2)]
    ray_cluster.wait_for_nodes()
    with closed_gate(gate) as open_gate:
        watcher = TakesFinalTasksAway(ray_cluster, nodes, gate, open_gate)
        executor = RayActorPoolExecutor()
        result = pipeline(tmp_path / "in", gate).run(executor, checkpoint_path=str(run), observer=watcher)
    (other,) = nodes
    ray_cluster.remove_node(other)

    ids = [[f"{file}-{piece * ROWS + row}" for row in range(ROWS)] for file in range(FILES) for piece in range(PIECES)]
    assert [task.column("id").to_pylist() for task in result] == ids
    assert (result.read, result.written) == (FILES * PIECES * ROWS,) * 2
    events = recorded_events(run)
    assert [event.root for event in events if isinstance(event, OutputsLost)] == [1]
    lost_at = next(number for number, event in enumerate(events) if isinstance(event, NodeLost))
    ticks = [event.now for event in events[lost_at:] if isinstance(event, Ticked)]
    assert max(later - earlier for earlier, later in pairwise(ticks)) < LOOKS_S


def test_stages_go_along_in_a_call_unless_they_are_large(ray_cluster):
    import ray

    assert in_a_call(ray, b"stages") == b"stages"
    assert ray.get(in_a_call(ray, bytes(MESSAGE_BYTES + 1))) == bytes(MESSAGE_BYTES + 1)
