"""Runs `setup_on_node` of every stage that has one, once, before any worker starts on a machine.

It runs in a process of its own: what it loads (a model, to fetch its files) must not stay in the memory of the driver,
or of whoever looks after a machine of a cluster, nor be copied into every worker.
"""

import pickle
import subprocess
import sys

import cloudpickle

from gristmill.engine.plan import AnyStage, Group
from gristmill.errors import RunFailed
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata

CODE = "from gristmill.backends.node_setup import main; main()"


def node_work(groups: tuple[Group, ...]) -> bytes | None:
    """Return what `set_up_node` needs, which may be called on another machine; None if no stage wants it."""
    wanted = [stage for group in groups for stage in group.stages if stage.wants_node_setup()]
    return pickle.dumps((list(sys.path), cloudpickle.dumps(wanted))) if wanted else None


def set_up_node(work: bytes, node: NodeInfo) -> None:
    """Set up this machine; raises RunFailed with the stage's own error."""
    told = pickle.dumps((work, node))
    done = subprocess.run([sys.executable, "-c", CODE], input=told, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RunFailed(f"setup_on_node failed:\n{done.stderr.decode(errors='replace').strip()}")


def main() -> None:
    """Run in the new process."""
    work, node = pickle.loads(sys.stdin.buffer.read())
    path, stages = pickle.loads(work)
    sys.path += [entry for entry in path if entry not in sys.path]
    loaded: list[AnyStage] = pickle.loads(stages)
    for stage in loaded:
        stage.setup_on_node(node, WorkerMetadata())
