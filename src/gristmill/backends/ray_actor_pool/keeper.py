"""`NodeKeeper`: one actor for each machine of a run, beside its workers and outliving them.

It says what the machine has, runs `setup_on_node` there once, and reads the crumbs of workers that have died. When it
no longer answers, the machine is gone. It takes no decision and no task.
"""

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gristmill import __version__
from gristmill.backends.scheduled.driver import set_up_node
from gristmill.errors import RunFailed
from gristmill.metrics.node_sample import NodeSample
from gristmill.stages.worker_info import NodeInfo
from gristmill.worker.machine import NodeSampler


@dataclass(frozen=True)
class Place:
    """What a driver needs to know of a machine."""

    versions: dict[str, str]
    crumbs: str  # the directory workers leave them in


def versions() -> dict[str, str]:
    """What has to be the same on every machine of a run, as found on this one: stages are pickled and unpickled."""
    return {"gristmill": __version__, "Python": f"{sys.version_info.major}.{sys.version_info.minor}"}


class NodeKeeper:
    """Looks after one machine for one run."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self._crumbs = Path(tempfile.mkdtemp(prefix="gristmill-crumbs-"))
        self._sampler = NodeSampler()

    def welcome(self, work: bytes | None, wanted: dict[str, str]) -> tuple[Place, str]:
        """Run `setup_on_node` of the stages that have one; return what there is here, and the set-up's error, if any.

        With other versions than the driver's `wanted` the machine is of no use, and is left as it was.
        """
        place = Place(versions(), str(self._crumbs))
        try:
            if work is not None and place.versions == wanted:
                set_up_node(work, NodeInfo(self.node_id))
        except RunFailed as error:
            return place, str(error)
        return place, ""

    def sample(self) -> NodeSample:
        """How the machine is doing."""
        return self._sampler.take()

    def look_at_crumb(self, file: str) -> bytes:
        """The crumbs of a worker, or nothing; their file is left in place."""
        try:
            return Path(file).read_bytes()
        except FileNotFoundError:
            return b""

    def read_crumb(self, file: str) -> bytes:
        """The crumbs a worker that has ended left, or nothing; their file is removed."""
        left = self.look_at_crumb(file)
        Path(file).unlink(missing_ok=True)
        return left

    def close(self) -> None:
        """Remove what was left."""
        shutil.rmtree(self._crumbs, ignore_errors=True)
