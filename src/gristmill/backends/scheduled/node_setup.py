"""Runs `setup_on_node` of every stage that has one, once, before any worker starts on a machine.

It runs in a process of its own: what it loads (a model, to fetch its files) must not stay in the memory of the driver,
or of whoever looks after a machine of a cluster, nor be copied into every worker.
"""

import os
import pickle
import subprocess
import sys
import tempfile

import cloudpickle

from gristmill.backends.local.launch import where_prints_go
from gristmill.engine.plan import AnyStage, Group
from gristmill.errors import RunFailed
from gristmill.runs.hang_watch import waiting_for
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.worker.notes import Notes

CODE = "from gristmill.backends.scheduled.node_setup import main; main()"


def node_work(groups: tuple[Group, ...]) -> bytes | None:
    """Return what `set_up_node` needs, which may be called on another machine; None if no stage wants it."""
    wanted = [
        (name, stage)
        for group in groups
        for name, stage in zip(group.names, group.stages, strict=True)
        if stage.wants_node_setup()
    ]
    return pickle.dumps((list(sys.path), cloudpickle.dumps(wanted))) if wanted else None


def set_up_node(work: bytes, node: NodeInfo) -> None:
    """Set up this machine; raises RunFailed with the stage's own error."""
    told = pickle.dumps((work, node))
    notes = Notes.create("starting a process for setup_on_node")
    # A file, not a pipe: what the stage leaves running may hold it open, and a pipe would not end before that does.
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(
            [sys.executable, "-P", "-c", CODE, str(notes.fd)],
            stdin=subprocess.PIPE,
            stdout=where_prints_go(),
            stderr=errors,
            pass_fds=[notes.fd],
        ) as process:
            notes.close_fd()
            with waiting_for(lambda: f"{notes.read()} (process {process.pid})"):
                try:
                    process.communicate(told)
                except BaseException:
                    process.kill()
                    raise
        if process.returncode:
            errors.seek(0)
            raise RunFailed(f"setup_on_node failed:\n{errors.read().decode(errors='replace').strip()}")


def main() -> None:
    """Run in the new process."""
    notes, own = Notes.open(int(sys.argv[1])), os.getpid()
    work, node = pickle.loads(sys.stdin.buffer.read())
    path, stages = pickle.loads(work)
    sys.path += [entry for entry in path if entry not in sys.path]
    notes("loading the stages for setup_on_node")
    loaded: list[tuple[str, AnyStage]] = pickle.loads(stages)
    for name, stage in loaded:
        notes(f"in setup_on_node of stage {name}")
        stage.setup_on_node(node, WorkerMetadata())
        if os.getpid() != own:  # a process that the stage has forked and that has come back
            os._exit(1)
