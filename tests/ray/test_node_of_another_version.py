"""A node that joins while a run lasts, with another gristmill than the driver's, is named and left alone."""

import os
from pathlib import Path

import pytest
from tests.jsonl_files import contents, write_documents
from tests.ray.gated import closed_gate, notes, small_pipeline
from tests.ray_cluster import NODE

import gristmill
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

FILES = 20  # more than pass before the gate

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.heavy, pytest.mark.xdist_group("ray")]


def install_another_version(directory):
    """Put this gristmill there under another version; return the search path that finds it first."""
    here, there = Path(gristmill.__file__).parent, directory / "gristmill"
    there.mkdir(parents=True)
    for entry in here.iterdir():
        (there / entry.name).symlink_to(entry)
    (there / "__init__.py").unlink()
    text = (here / "__init__.py").read_text()
    (there / "__init__.py").write_text(text.replace(gristmill.__version__, "0.0.1"))
    return os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])


class AddsANode:
    """An observer: adds a node when work is under way, and opens the gate when the run has a word for it."""

    def __init__(self, cluster, path, gate, open_gate):
        self.cluster, self.path, self.gate, self.open_gate = cluster, path, gate, open_gate
        self.added = None

    def __call__(self, snapshot):
        if self.added is None and any("did" in words for words in notes(self.gate).values()):
            self.added = self.cluster.add_node(**NODE, env_vars={"PYTHONPATH": self.path})
        elif any("is not used" in message or "has joined" in message for message in snapshot.messages):
            self.open_gate()


def test_a_node_that_joins_with_another_version_is_named_and_left_alone(ray_cluster, tmp_path):
    for file in range(FILES):
        write_documents(tmp_path / "in" / f"{file}.jsonl", [{"id": f"{file}", "text": "word"}])
    gate = tmp_path / "gate"
    gate.mkdir()
    path = install_another_version(tmp_path / "elsewhere")
    with closed_gate(gate) as open_gate:
        watcher = AddsANode(ray_cluster, path, gate, open_gate)
        pipeline = small_pipeline(tmp_path / "in", tmp_path / "out", gate)
        result = pipeline.run(RayActorPoolExecutor(), observer=watcher)
    ray_cluster.remove_node(watcher.added)

    version = gristmill.__version__
    (said,) = (message for message in result.messages if "is not used" in message)
    assert f"expected gristmill {version} as here; got 0.0.1. Install the same version on every machine" in said
    assert watcher.added.node_id not in notes(gate)
    assert (result.read, result.written) == (FILES, FILES)
    assert len(contents(tmp_path / "out")) == FILES
