"""A run that another engine schedules and that does not move says so, with what is known."""

import pyarrow as pa
import pytest

from gristmill.backends.delegated.registrar import News
from gristmill.backends.delegated.standstill import Standstill
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch

PATIENCE_S = 60.0


class _Stands(ProcessingStage):
    name = "stands"
    fusible = False

    def process(self, task):
        return task


@pytest.fixture
def plan():
    wide = _Stands().with_(name="wide", resources=Resources(cpus=8))
    task = DocumentBatch("d", pa.table({"n": [1]}))
    return Pipeline("p", stages=[_Stands(), wide]).plan(initial_tasks=[task])


def news(*, workers=None, busy=None, receipts=(), messages=()):
    return News(list(receipts), [], workers or {}, busy or {}, "", "failed", tuple(messages))


def watch(plan, running=None):
    return Standstill(plan, PATIENCE_S, lambda: running or {}, lambda: "0 of 4 CPUs are free")


def test_a_cluster_that_gives_no_worker_is_named_with_what_was_asked_for(plan):
    look = watch(plan)

    assert look.words(news(workers={0: 1}), 0.0) == []
    assert look.words(news(workers={0: 1}), 59.0) == []
    assert look.words(news(workers={0: 1}), 60.0) == [
        (
            "nothing has moved for 60 s: no worker of wide has become ready (each asks for 8 CPUs); "
            "the cluster may lack what they ask for: 0 of 4 CPUs are free"
        )
    ]


def test_it_is_said_again_after_twice_as_long(plan):
    look = watch(plan)
    said = [second for second in range(600) if look.words(news(), float(second))]

    assert said == [60, 120, 240, 480]


def test_tasks_at_work_are_named_when_their_workers_had_time_to_speak(plan):
    workers, busy = {0: 2, 1: 1}, {0: 4}
    look = watch(plan, {0: ["d", "b", "a", "c"]})
    look.words(news(workers=workers, busy=busy), 0.0)

    assert look.words(news(workers=workers, busy=busy), 60.0) == []
    assert look.words(news(workers=workers, busy=busy), 75.0) == [
        "nothing has moved for 75 s: stands has 4 tasks at work (a, b, c and 1 more)"
    ]


def test_an_engine_that_does_not_end_is_told_from_one_without_workers(plan):
    look = watch(plan)
    look.words(news(workers={0: 1, 1: 1}), 0.0)

    words = look.words(news(workers={0: 1, 1: 1}), 60.0)
    assert words == ["nothing has moved for 60 s: the engine neither begins a task nor ends"]


@pytest.mark.parametrize(
    "moved", [{"workers": {0: 1}}, {"busy": {0: 1}}, {"receipts": ["one"]}, {"messages": ["busy with it"]}]
)
def test_whatever_moves_begins_the_wait_anew(plan, moved):
    look = watch(plan)
    look.words(news(), 0.0)
    look.words(news(**moved), 59.0)

    assert look.words(news(**moved), 61.0) == []
