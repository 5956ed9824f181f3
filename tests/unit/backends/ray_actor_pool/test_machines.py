"""A node of a cluster as a machine of the scheduler: what is asked of Ray for it, and what is said about it."""

import pytest

from gristmill.backends.ray_actor_pool.machines import Machine
from gristmill.backends.ray_actor_pool.pool import _cause, _share
from gristmill.engine.events import NodeJoined
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import group


def machine(cpus=2.0, gpu_memory_gb=()):
    return Machine(7, "id", "10.0.0.2", None, "/crumbs", cpus, gpu_memory_gb, 1000)


def test_ray_is_asked_for_no_more_cpus_than_there_are():
    node = machine(cpus=2.0)

    assert [node.ask_cpus(1.5), node.ask_cpus(1.0), node.ask_cpus(1.0)] == [1.5, 0.5, 0.0]


def test_a_machine_joins_with_what_it_has():
    assert machine(gpu_memory_gb=(80.0,)).joined() == NodeJoined(7, 2.0, (80.0,), 1000)


@pytest.mark.parametrize(
    ("resources", "gpus", "share"),
    [
        (Resources(), (), 0.0),
        (Resources(gpus=1), (0,), 1.0),
        (Resources(gpus=2), (0, 1), 2.0),
        (Resources(gpus=0.25), (1,), 0.25),
        (Resources(gpu_memory_gb=20), (1,), 0.25),
    ],
)
def test_a_worker_gets_the_share_of_a_gpu_the_scheduler_has_counted(resources, gpus, share):
    assert _share(group(0, resources=resources), machine(gpu_memory_gb=(80.0, 80.0)), gpus) == share


def test_the_cause_of_an_end_is_one_line():
    said = "The actor died unexpectedly.\n\tpid: 7\n\nIt was killed by `ray.kill`.\n"

    assert _cause(RuntimeError(said)) == "It was killed by `ray.kill`."


def test_an_end_for_want_of_memory_is_called_that():
    assert _cause(RuntimeError("killed\nby the memory monitor of the node")) == "killed because memory ran out"
