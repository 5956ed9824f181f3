"""What a stage may rely on in its workers: set-up, GPUs, recycling, and that a stuck one is named."""

import os
from pathlib import Path

import pytest
from tests.fault.processes import wait_until

from gristmill.backends.local import LocalExecutor
from gristmill.backends.local.executor import Gpu, find_gpus
from gristmill.engine.policies.packing import UNITS, choose_gpus
from gristmill.errors import ConfigError, RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import EmptyTask, FileGroupTask

pytestmark = pytest.mark.slow


class NotesItsLife(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Writes a file for every call of its life cycle, named after the process."""

    name = "notes_its_life"

    def __init__(self, directory):
        self.directory = str(directory)

    def note(self, what):
        with open(f"{self.directory}/{what}-{os.getpid()}", "a") as file:  # noqa: PTH123
            file.write("x")

    def setup_on_node(self, node_info=None, worker_metadata=None):
        self.note("node")

    def setup(self, worker_metadata=None):
        self.note("setup")
        self.devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        self.told = ",".join(worker_metadata.gpu_ids)

    def process(self, task):
        self.note("task")
        return FileGroupTask("seen", [*task.data, self.devices, self.told, str(os.getpid())])

    def teardown(self):
        self.note("teardown")


def tasks(number):
    return [FileGroupTask("given", [str(n)]) for n in range(number)]


def notes(directory):
    """How often each process was called: {"setup": {pid: 1}, ...}."""
    found = {}
    for path in directory.iterdir():
        what, _, pid = path.name.partition("-")
        found.setdefault(what, {})[pid] = len(path.read_text())
    return found


def test_a_stage_is_set_up_once_per_machine_and_once_per_worker_and_torn_down(tmp_path):
    """`setup_on_node` once per machine, `setup` and `teardown` once per worker."""
    stage = NotesItsLife(tmp_path).with_(num_workers=2)
    result = Pipeline("life", stages=[stage]).run(LocalExecutor(num_workers=2), initial_tasks=tasks(40))
    seen = notes(tmp_path)

    assert len(result) == 40
    assert list(seen["node"].values()) == [1]
    assert set(seen["setup"].values()) == set(seen["teardown"].values()) == {1}
    assert seen["setup"].keys() == seen["teardown"].keys()
    assert len(seen["setup"]) == 2
    assert sum(seen["task"].values()) == 40


def test_in_this_process_the_life_of_a_stage_is_the_same(tmp_path):
    Pipeline("life", stages=[NotesItsLife(tmp_path)]).run(LocalExecutor(num_workers=0), initial_tasks=tasks(3))
    seen = notes(tmp_path)

    assert [list(seen[what].values()) for what in ("setup", "task", "teardown")] == [[1], [3], [1]]


class WaitsForASuccessor(NotesItsLife):
    """Does not come to the end of its work before a second worker has been set up, however slow that is."""

    name = "waits_for_a_successor"

    def process(self, task):
        if task.data == ["100"]:
            wait_until(lambda: len([*Path(self.directory).glob("setup-*")]) > 1, what="a second worker")
        return super().process(task)


def test_workers_are_recycled_and_nothing_is_lost(tmp_path):
    """Recycling by `worker_max_lifetime_m` keeps results."""
    executor = LocalExecutor(num_workers=1, worker_max_lifetime_m=1e-9, worker_restart_interval_m=0.0)
    result = Pipeline("worn", stages=[WaitsForASuccessor(tmp_path)]).run(executor, initial_tasks=tasks(200))
    seen = notes(tmp_path)

    assert [task.data[0] for task in result] == [str(n) for n in range(200)]
    assert len(seen["setup"]) > 1
    assert set(seen["setup"].values()) == {1}


def test_workers_are_recycled_after_so_many_tasks_and_nothing_is_lost(tmp_path):
    executor = LocalExecutor(num_workers=1, worker_max_tasks=20)
    result = Pipeline("used", stages=[WaitsForASuccessor(tmp_path)]).run(executor, initial_tasks=tasks(200))
    seen = notes(tmp_path)

    assert [task.data[0] for task in result] == [str(n) for n in range(200)]
    assert len(seen["setup"]) > 1
    assert seen["setup"].keys() == seen["teardown"].keys()


def test_fractions_of_gpus_are_packed_and_workers_see_their_own(tmp_path):
    """GPUs are packed by fraction and handed to workers as CUDA_VISIBLE_DEVICES."""
    stage = NotesItsLife(tmp_path).with_(resources=Resources(gpus=0.5), num_workers=4)
    executor = LocalExecutor(num_workers=2, gpus=2, gpu_memory_gb=80)
    result = Pipeline("gpus", stages=[stage]).run(executor, initial_tasks=tasks(60))
    seen = [task.data[1:3] for task in result]

    assert len(notes(tmp_path)["setup"]) == 4
    assert all(devices == told and devices in ("0", "1") for devices, told in seen)


def test_a_stage_of_two_gpus_sees_both(tmp_path):
    stage = NotesItsLife(tmp_path).with_(resources=Resources(gpus=2))
    (task,) = Pipeline("two", stages=[stage]).run(LocalExecutor(num_workers=1, gpus=2), initial_tasks=tasks(1))

    assert task.data[1:3] == ["0,1", "0,1"]


@pytest.mark.parametrize(
    ("resources", "workers"),
    [
        (Resources(gpus=0.25), 8),
        (Resources(gpus=0.6), 2),
        (Resources(gpus=1), 2),
        (Resources(gpus=2), 1),
        (Resources(gpu_memory_gb=10), 16),
        (Resources(gpu_memory_gb=41), 2),
    ],
)
def test_as_many_workers_fit_two_gpus_as_their_shares_allow(resources, workers):
    """Two declared devices of 80 GB, packed by fraction and memory."""
    gpus = find_gpus(2, 80)
    free = [UNITS for _ in gpus]
    placed = 0
    while (shares := choose_gpus(resources, free, [gpu.memory_gb for gpu in gpus])) is not None:
        placed += 1
        for gpu, units in shares:
            free[gpu] -= units

    assert gpus == (Gpu("0", 80), Gpu("1", 80))
    assert placed == workers
    assert min(free) >= 0


def test_stages_that_cannot_share_a_gpu_take_turns(tmp_path):
    first = NotesItsLife(tmp_path).with_(name="first", resources=Resources(gpus=1))
    second = NotesItsLife(tmp_path).with_(name="second", resources=Resources(gpus=1))
    result = Pipeline("turns", stages=[first, second]).run(LocalExecutor(gpus=1), initial_tasks=tasks(6))

    assert [task.data[0] for task in result] == [str(n) for n in range(6)]


class FailsToSetUp(NotesItsLife):
    name = "fails_to_set_up"

    def setup(self, worker_metadata=None):
        raise OSError("no model here")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_set_up_that_fails_ends_the_run_with_its_error(tmp_path, workers):
    pipeline = Pipeline("broken", stages=[FailsToSetUp(tmp_path)])

    with pytest.raises(RunFailed, match=r"fails_to_set_up: set-up failed .*(?s:.)*OSError: no model here"):
        pipeline.run(LocalExecutor(num_workers=workers), initial_tasks=tasks(1))


class CannotBePickled(ProcessingStage[EmptyTask, EmptyTask]):
    name = "cannot_be_pickled"

    def __init__(self):
        import threading

        self.lock = threading.Lock()

    def process(self, task):
        return task


def test_a_stage_that_cannot_travel_is_an_error_that_says_what_to_do():
    """An error that names the nearest right thing."""
    with pytest.raises(ConfigError, match=r"^cannot_be_pickled: expected .* in setup\(\)\.$"):
        Pipeline("p", stages=[CannotBePickled()]).run(LocalExecutor(num_workers=1))
