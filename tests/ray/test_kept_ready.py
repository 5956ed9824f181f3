"""Runs in a row hand their actors on, and an actor of another size finds room."""

import os

import pytest
from tests.number_task import NumberTask

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import EmptyTask

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
]


class SayProcess(ProcessingStage[EmptyTask, NumberTask]):
    name = "say_process"

    def process(self, task):
        return NumberTask(dataset_name="process", data=os.getpid())


def process_of_worker(executor, cpus):
    stage = SayProcess().with_(resources=Resources(cpus=cpus), num_workers=1)
    return Pipeline("say", stages=[stage]).run(executor)[0].data


def test_a_process_serves_the_next_run_and_makes_room_for_one_of_another_size():
    executor = RayActorPoolExecutor(show_progress=False)
    with executor.kept_ready() as ready:
        first, again = process_of_worker(ready, cpus=1), process_of_worker(ready, cpus=1)
        larger = process_of_worker(ready, cpus=4)  # all the node has

    assert first == again
    assert larger != first


def test_workers_that_are_to_be_replaced_are_not_kept():
    executor = RayActorPoolExecutor({"worker_max_tasks": 1000}, show_progress=False)
    with executor.kept_ready() as ready:
        assert process_of_worker(ready, cpus=1) != process_of_worker(ready, cpus=1)
