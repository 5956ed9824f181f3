"""Runs in a row share the process that forks their workers, and nothing else."""

import os
import sys

import psutil
import pyarrow as pa
import pytest
from tests.number_task import NumberTask

from gristmill.backends.local import LocalExecutor
from gristmill.errors import TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask
from gristmill.worker.machine import own_bytes

pytestmark = pytest.mark.slow


class SayParent(ProcessingStage[EmptyTask, NumberTask]):
    name = "say_parent"

    def process(self, task):
        return NumberTask(dataset_name="parent", data=os.getppid())


class FailsAlways(ProcessingStage[EmptyTask, NumberTask]):
    name = "fails"

    def process(self, task):
        raise ValueError("on purpose")


def parent_of_workers(executor):
    return Pipeline("say", stages=[SayParent()]).run(executor)[0].data


def test_workers_of_two_runs_have_the_same_parent_while_it_is_kept():
    with LocalExecutor(num_workers=2).kept_ready() as ready:
        parents = {parent_of_workers(ready), parent_of_workers(ready)}
        (parent,) = parents
        assert psutil.pid_exists(parent)
        assert psutil.Process(parent).children() == []
    assert not psutil.pid_exists(parent)


def test_otherwise_each_run_has_its_own():
    executor = LocalExecutor(num_workers=1)
    assert parent_of_workers(executor) != parent_of_workers(executor)


def test_a_run_that_failed_leaves_the_next_one_unharmed():
    with LocalExecutor(num_workers=2).kept_ready() as ready:
        with pytest.raises(TooManyQuarantined):
            Pipeline("fail", stages=[FailsAlways()]).run(ready, max_quarantined=0)
        assert parent_of_workers(ready)


class SayWhetherImported(ProcessingStage[EmptyTask, NumberTask]):
    name = "say_whether_imported"

    def process(self, task):
        return NumberTask(dataset_name="imported", data=int("gristmill.stages.exchange" in sys.modules))


@pytest.mark.parametrize("imports", [(), ("gristmill.stages.exchange",)])
def test_modules_are_imported_before_there_is_a_plan_that_needs_them(imports):
    with LocalExecutor(num_workers=1).kept_ready(imports) as ready:
        (said,) = Pipeline("ask", stages=[SayWhetherImported()]).run(ready)

    assert said.data == len(imports)


def test_without_processes_there_is_nothing_to_keep():
    executor = LocalExecutor(num_workers=0)
    with executor.kept_ready() as ready:
        assert ready is executor


def test_without_processes_only_this_one_is_counted():
    """What an earlier run of this program has left in Arrow's hands is given back before."""
    left = pa.allocate_buffer(200 << 20)
    memoryview(left).cast("B")[:: 1 << 12] = bytes(200 << 8)
    now = own_bytes()
    del left
    executor = LocalExecutor(num_workers=0, memory_limit=now - (100 << 20))

    assert Pipeline("count", stages=[SayParent()]).run(executor).balanced
