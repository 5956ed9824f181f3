"""Runs `setup_on_node` of every stage that has one, once, before any worker starts.

It runs in a process of its own: what it loads (a model, to fetch its files) must not stay in the driver's memory, nor
be copied into every worker.
"""

import pickle
import subprocess
import sys

import cloudpickle

from gristmill.engine.plan import AnyStage, Group
from gristmill.errors import RunFailed
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata

CODE = "from gristmill.backends.local.node_setup import main; main()"


def set_up_node(groups: tuple[Group, ...]) -> None:
    """Set up the node for these stages; raises RunFailed with the stage's own error."""
    wanted = [stage for group in groups for stage in group.stages if stage.wants_node_setup()]
    if not wanted:
        return
    work = pickle.dumps((list(sys.path), cloudpickle.dumps(wanted)))
    done = subprocess.run([sys.executable, "-c", CODE], input=work, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RunFailed(f"setup_on_node failed:\n{done.stderr.decode(errors='replace').strip()}")


def main() -> None:
    """Run in the new process."""
    path, stages = pickle.loads(sys.stdin.buffer.read())
    sys.path[:] = path
    loaded: list[AnyStage] = pickle.loads(stages)
    for stage in loaded:
        stage.setup_on_node(NodeInfo(), WorkerMetadata())
