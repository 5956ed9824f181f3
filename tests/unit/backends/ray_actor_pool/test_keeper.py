"""The keeper of a machine sets it up for a driver of its own versions, and leaves it as it was for any other."""

import pytest
from msgspec.structs import replace

from gristmill.backends.ray_actor_pool.keeper import NodeKeeper, versions
from gristmill.backends.scheduled.driver import node_work
from gristmill.stages.base import ProcessingStage
from gristmill.testing.virtual_run import group


class MarksItsNode(ProcessingStage):
    name = "marks_its_node"

    def __init__(self, file):
        self.file = file

    def setup_on_node(self, node_info=None, worker_metadata=None):
        self.file.touch()

    def process(self, task):
        return task


@pytest.mark.parametrize(
    ("wanted", "is_set_up"),
    [
        (versions(), True),
        ({**versions(), "gristmill": "0.0.1"}, False),
        ({**versions(), "Python": "3.8"}, False),
    ],
)
def test_a_machine_is_set_up_only_for_a_driver_of_its_own_versions(tmp_path, wanted, is_set_up):
    keeper = NodeKeeper("node")
    work = node_work((replace(group(0), stages=(MarksItsNode(tmp_path / "mark"),)),))
    place, error = keeper.welcome(work, wanted)
    keeper.close()

    assert (place.versions, error) == (versions(), "")
    assert (tmp_path / "mark").exists() == is_set_up
