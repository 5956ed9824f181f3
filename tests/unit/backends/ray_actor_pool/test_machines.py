"""A node of a cluster as a machine of the scheduler: what is asked of Ray for it, and what is said about it."""

import sys

import pytest

from gristmill import __version__
from gristmill.backends.ray_actor_pool.keeper import Place
from gristmill.backends.ray_actor_pool.machines import Machine, misfit
from gristmill.backends.ray_actor_pool.pool import _cause, _no_keeper, _share
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


PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("version", "python", "message"),
    [
        (__version__, PYTHON, ""),
        ("0.0.1", PYTHON, f"expected gristmill {__version__} as here; got 0.0.1. Install the same version on every"),
        (__version__, "3.8", f"expected Python {PYTHON} as here; got 3.8. Install the same version on every machine"),
    ],
)
def test_a_node_with_other_versions_is_named_with_both(version, python, message):
    said = misfit("10.0.0.2", Place({"gristmill": version, "Python": python}, "/crumbs"))

    assert said.startswith(f"node 10.0.0.2: {message}" if message else "")
    assert bool(said) == bool(message)


def test_a_node_without_gristmill_is_told_what_it_lacks():
    said = _no_keeper("10.0.0.2", RuntimeError("The worker died.\nModuleNotFoundError: No module named 'gristmill'"))

    assert said.startswith("node 10.0.0.2: expected a worker process to start there; got: ModuleNotFoundError")
    assert "installed on every node" in said


def test_the_cause_of_an_end_is_one_line():
    said = "The actor died unexpectedly.\n\tpid: 7\n\nIt was killed by `ray.kill`.\n"

    assert _cause(RuntimeError(said)) == "It was killed by `ray.kill`."


def test_an_end_for_want_of_memory_is_called_that():
    assert _cause(RuntimeError("killed\nby the memory monitor of the node")) == "killed because memory ran out"
