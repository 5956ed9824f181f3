"""What a plan asks Ray for. No Ray is started."""

import pyarrow as pa
import pytest

from gristmill.backends.delegated.envelope import Envelope, pack, unpack
from gristmill.backends.ray_data.operators import from_rows, is_stateful, shapes, to_rows
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch, EmptyTask


class _Plain(ProcessingStage):
    fusible = False

    def process(self, task):
        return task


class _WithModel(_Plain):
    def setup(self, worker_metadata=None):
        self.model = 1


def plan(*stages):
    named = [stage.with_(name=f"stage-{number}") for number, stage in enumerate(stages)]
    return Pipeline("p", stages=named).plan(initial_tasks=[EmptyTask()])


def asked(*stages, cpus=8.0, gpus=0.0):
    return [shape.arguments() for shape in shapes(plan(*stages), cpus=cpus, gpus=gpus)]


def test_a_stage_without_state_runs_as_tasks():
    assert asked(_Plain()) == [{"num_cpus": 1.0}]


def test_a_stage_with_a_set_up_runs_as_actors_of_which_there_may_be_as_many_as_fit():
    assert asked(_WithModel().with_(resources=Resources(cpus=2))) == [{"num_cpus": 2.0, "concurrency": (1, 4)}]


def test_a_fixed_number_of_workers_is_kept():
    assert asked(_Plain().with_(num_workers=3)) == [{"num_cpus": 1.0, "concurrency": 3}]


def test_gpus_are_asked_for_and_bound_the_number_of_actors(monkeypatch):
    groups = Pipeline("p", stages=[_Plain()]).plan(initial_tasks=[EmptyTask()])
    from msgspec.structs import replace

    group = replace(groups.groups[0], resources=Resources(cpus=1, gpus=0.5))
    shape = shapes(replace(groups, groups=(group,)), cpus=8, gpus=1)[0]

    assert shape.arguments() == {"num_cpus": 1.0, "num_gpus": 0.5, "concurrency": (1, 2)}


@pytest.mark.parametrize("cpus", [1, 2, 4])
def test_many_stages_with_state_fit_on_a_small_machine(cpus):
    wanted = asked(*[_WithModel()] * 6, cpus=cpus)

    assert sum(each["num_cpus"] for each in wanted) <= cpus


def test_a_stage_may_ask_to_be_an_actor():
    spec = _Plain().with_(ray_stage_spec={"is_actor_stage": True})

    assert is_stateful(plan(spec).groups[0])


def test_tasks_survive_as_rows():
    batch = DocumentBatch("d", pa.table({"text": ["ä" * 3000, None]}))
    rows = to_rows([pack(3, "item", batch), pack(4, "other", EmptyTask())])
    back = from_rows(rows)

    assert [(each.root, each.item_id) for each in back] == [(3, "item"), (4, "other")]
    assert unpack(back[0]).column("text").to_pylist() == ["ä" * 3000, None]
    assert isinstance(unpack(back[1]), EmptyTask)


def test_no_rows_have_the_columns_of_rows():
    assert to_rows([]).schema.names == list(Envelope._fields)
