"""The driver does what the scheduler says, with a pool that is not always able to."""

import threading

import pytest

from gristmill.backends.local.inline_pool import InlinePool
from gristmill.backends.scheduled.driver import Driver
from gristmill.engine.events import NodeJoined
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.pipeline import Pipeline
from gristmill.runs.books import Books
from gristmill.runs.user import watched
from gristmill.stages import compiled_kernel
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask
from gristmill.worker.job import RunSettings
from gristmill.worker.wire import BlockLost

PARTITIONS = 3


class MakesTwo(ProcessingStage[EmptyTask, EmptyTask]):
    name = "makes_two"

    def process(self, task):
        return [task, task]


class LosesSome(InlinePool):
    """A pool on whose machines the first final tasks are lost."""

    def __init__(self, groups, *, lost):
        super().__init__(groups, RunSettings())
        self.lost = lost
        self.asked = 0

    def keep(self, payload):
        task = super().keep(payload)
        self.asked += 1
        if self.asked in self.lost:
            raise BlockLost("its machine is gone")
        return task

    def left_over(self):
        return self._tasks


def driver_of(pool, plan):
    return Driver(
        plan,
        Scheduler(plan.groups, SchedulerConfig(num_sources=PARTITIONS)),
        pool,
        Books(plan, {}),
        None,
        None,
        nodes=[NodeJoined(0, 1, (), 1 << 30)],
        memory_limit=1 << 30,
        logging_interval=5.0,
    )


def plan_of_twos():
    return Pipeline("p", stages=[MakesTwo()]).plan(initial_tasks=[EmptyTask() for _ in range(PARTITIONS)])


@pytest.mark.parametrize("lost", [(), (1,), (2,), (1, 4, 6)])
def test_a_partition_whose_final_tasks_are_lost_is_done_again(lost):
    plan = plan_of_twos()
    pool = LosesSome(plan.groups, lost=lost)
    driver = driver_of(pool, plan)
    finish = driver.run()

    assert finish.outcome == "finished"
    assert [len(driver.books.tasks[root]) for root in range(PARTITIONS)] == [2] * PARTITIONS
    assert sorted(driver.books.records) == list(range(PARTITIONS))
    assert not pool.left_over()


@pytest.mark.parametrize(
    ("said", "words"), [((), "looking for kernels to compile"), (("compiling 12 kernels",), "compiling 12 kernels")]
)
def test_the_watchdog_says_that_kernels_are_compiled(monkeypatch, said, words):
    spoken = threading.Event()

    def listen(message):
        if words in message:
            spoken.set()

    def compiles_until_somebody_speaks(tell):
        for line in said:
            tell(line)
        assert spoken.wait(60)

    monkeypatch.setattr(compiled_kernel, "compile_missing", compiles_until_somebody_speaks)
    plan = plan_of_twos()
    with watched("running 'p' has taken", 0.01, listen):
        driver_of(InlinePool(plan.groups, RunSettings()), plan).compile_missing()

    assert spoken.is_set()
