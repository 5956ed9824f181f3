"""What is wrong with `config` is said when the executor is made; what the other engine cannot do, when a plan is."""

import pytest

from gristmill.backends.ray_data import RayDataExecutor
from gristmill.backends.xenna import XennaExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import EmptyTask


class _OnGpu(ProcessingStage):
    name = "on_gpu"
    resources = Resources(gpu_memory_gb=8)

    def process(self, task):
        return task


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cpu": 2}, "got 'cpu'; did you mean 'cpus'?"),
        ({"execution_mode": "batch"}, "got 'execution_mode'. LocalExecutor"),
        ({"cpus": 0}, "expected cpus > 0; got 0"),
        ({"cpus": "all"}, "cpus: expected float | null, got str"),
        ({"object_store_memory": "much"}, "object_store_memory"),
        (["cpus"], "expected config to be a mapping of options; got ['cpus']"),
    ],
)
def test_a_wrong_option_of_ray_data_is_named(config, message):
    with pytest.raises(ConfigError) as caught:
        RayDataExecutor(config)

    assert str(caught.value).startswith("RayDataExecutor: ")
    assert message in str(caught.value)


def test_options_can_be_given_one_by_one():
    assert RayDataExecutor.from_options({"cpus": 2, "ignore_head_node": True}) == RayDataExecutor({"cpus": 2.0}, True)
    assert XennaExecutor.from_options({"execution_mode": "batch"}).settings().execution_mode == "batch"


@pytest.mark.parametrize("executor", [RayDataExecutor(), XennaExecutor()])
def test_a_gpu_by_memory_is_refused_and_who_can_do_it_named(executor):
    with pytest.raises(
        ConfigError, match=r"on_gpu: expected GPUs as .* LocalExecutor and RayActorPoolExecutor share GPUs"
    ):
        Pipeline("p", stages=[_OnGpu()]).plan(executor, initial_tasks=[EmptyTask()])
