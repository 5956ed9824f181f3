"""What stages are asked while a plan is made: what they lack, what they need, whether their work is done already."""

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import prepare
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import DocumentBatch

ON_GPU, ON_CPU = Resources(cpus=1.0, gpus=1.0), Resources(cpus=1.0)


class PreparedPassing(ProcessingStage):
    def process(self, task):
        return task


class PreparedChoosing(PreparedPassing):
    def resources_where(self, *, has_gpu):
        return self.__dict__.get("resources", ON_GPU if has_gpu else ON_CPU)


class PreparedLacking(PreparedPassing):
    def check_ready(self):
        raise ConfigError("PreparedLacking: expected a model; got none")


class PreparedOnce(PreparedPassing):
    """Done by an earlier one of its kind, which notes for how many it works."""

    works_for = 1

    def done_by(self, before):
        if not before or not isinstance(before[-1], PreparedOnce):
            return None
        changed = before[-1].with_()
        changed.works_for = before[-1].works_for + 1
        return [*before[:-1], changed]


def batch():
    return DocumentBatch("d", pa.table({"text": ["a"]}))


def planned(stage, executor):
    (group,) = Pipeline("p", stages=[stage]).plan(executor, initial_tasks=[batch()]).groups
    return group.resources


@pytest.mark.parametrize(("gpus", "expected"), [(0, ON_CPU), (2, ON_GPU)])
def test_a_stage_that_chooses_is_told_what_the_executor_has(gpus, expected):
    assert planned(PreparedChoosing(), LocalExecutor(gpus=gpus)) == expected


def test_what_a_user_asked_for_stays():
    wanted = Resources(cpus=2.0)

    assert planned(PreparedChoosing().with_(resources=wanted), LocalExecutor(gpus=1)) == wanted


def test_the_plan_tells_what_was_chosen():
    plan = Pipeline("p", stages=[PreparedChoosing()]).plan(LocalExecutor(gpus=1), initial_tasks=[batch()])

    assert "1 cpu + 1 gpu a worker" in plan.describe()


def test_nobody_looks_for_gpus_if_no_stage_chooses():
    def asked():
        raise AssertionError("asked for GPUs")

    assert len(prepare("p", [PreparedPassing()], asked)) == 1


def test_what_is_missing_is_said_while_the_plan_is_made():
    with pytest.raises(ConfigError, match=r"^PreparedLacking: expected a model; got none$"):
        Pipeline("p", stages=[PreparedPassing(), PreparedLacking()]).plan(initial_tasks=[batch()])


def test_work_that_an_earlier_stage_does_is_done_once_and_the_pipeline_stays_as_it_was():
    stages = [PreparedOnce(), PreparedOnce(), PreparedOnce(), PreparedPassing(), PreparedOnce()]
    ready = prepare("p", stages, bool)

    assert [type(stage).__name__ for stage in ready] == ["PreparedOnce", "PreparedPassing", "PreparedOnce"]
    assert [ready[0].works_for, ready[2].works_for] == [3, 1]
    assert [stage.works_for for stage in stages if isinstance(stage, PreparedOnce)] == [1, 1, 1, 1]
