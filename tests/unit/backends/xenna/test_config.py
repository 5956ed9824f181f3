"""Options of Xenna are read, checked and passed on; what cannot work is said before anything starts."""

import pytest

from gristmill.backends.xenna import XennaExecutor
from gristmill.backends.xenna.config import XennaConfig, check_size, enough_workers, stage_spec
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import EmptyTask


class _Plain(ProcessingStage):
    def process(self, task):
        return task


class _Apart(_Plain):
    fusible = False


def groups(*stages):
    named = [stage.with_(name=f"stage-{number}") for number, stage in enumerate(stages)]
    return Pipeline("p", stages=named).plan(initial_tasks=[EmptyTask()]).groups


def test_the_defaults_are_those_users_know():
    assert XennaExecutor().settings() == XennaConfig("streaming", 0.95, 180.0, None, False, 2, 0, 1)
    assert XennaConfig().pipeline_fields()["logging_interval_s"] == 60.0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"execution_mod": "batch"}, "got 'execution_mod'; did you mean 'execution_mode'?"),
        ({"memory_limit": "1GB"}, "got 'memory_limit'. LocalExecutor and RayActorPoolExecutor have it"),
        ({"execution_mode": "serving"}, "execution_mode: invalid enum value 'serving'"),
        ({"cpu_allocation_percentage": 95}, "expected cpu_allocation_percentage in (0, 1]; got 95"),
        ({"autoscale_interval_s": "often"}, "autoscale_interval_s: expected float, got str"),
        ({"logging_interval": 0}, "expected logging_interval > 0; got 0"),
        ({"worker_max_lifetime_m": -1}, "expected worker_max_lifetime_m ≥ 0; got -1"),
    ],
)
def test_a_wrong_option_is_named_with_what_would_be_right(config, message):
    with pytest.raises(ConfigError) as caught:
        XennaExecutor(config)

    assert str(caught.value).startswith("XennaExecutor: ")
    assert message in str(caught.value)


def test_options_become_fields_of_xenna_itself():
    v1 = pytest.importorskip("cosmos_xenna.pipelines.v1", reason="cosmos-xenna is not installed")
    fields = XennaConfig(worker_max_lifetime_m=30, worker_restart_interval_m=2, logging_interval=7).pipeline_fields()
    made = v1.PipelineConfig(**fields)

    assert (made.worker_max_lifetime_m, made.worker_restart_interval_m, made.logging_interval_s) == (30, 2, 7)


def test_a_stage_has_options_of_its_own():
    spec = {"worker_max_lifetime_m": 10, "worker_restart_interval_m": 1, "num_workers_per_node": 2}

    assert stage_spec(groups(_Plain().with_(xenna_stage_spec=spec))[0]) == spec


def test_fused_stages_have_to_agree():
    fused = groups(
        _Plain().with_(xenna_stage_spec={"slots_per_actor": 1}), _Plain().with_(xenna_stage_spec={"slots_per_actor": 2})
    )

    with pytest.raises(
        ConfigError, match="stage-1: expected the same slots_per_actor as its fused neighbours, 1; got 2"
    ):
        stage_spec(fused[0])


def test_an_unknown_option_of_a_stage_is_named():
    with pytest.raises(
        ConfigError, match=r"stage-0: .*got 'worker_max_lifetime'; did you mean 'worker_max_lifetime_m'"
    ):
        stage_spec(groups(_Plain().with_(xenna_stage_spec={"worker_max_lifetime": 1}))[0])


def test_a_machine_too_small_for_one_worker_of_each_stage_is_refused_and_local_executor_named():
    with pytest.raises(ConfigError) as caught:
        check_size(XennaConfig(), groups(_Apart(), _Apart(), _Apart()), [{}, {}, {}], cpus=2)

    assert str(caught.value) == (
        "XennaExecutor: expected 3 CPUs, for one worker of each of its stages (stage-0, stage-1, stage-2); "
        'got 1.9 (95% of 2). LocalExecutor runs any number of stages on one core; so does execution_mode "batch", '
        "one stage after another"
    )


def test_fused_stages_need_one_worker_together():
    check_size(XennaConfig(), groups(*[_Plain()] * 30), [{}], cpus=2)


def test_in_batch_mode_the_largest_stage_decides():
    check_size(XennaConfig(execution_mode="batch"), groups(_Apart(), _Apart(), _Apart()), [{}, {}, {}], cpus=2)


def test_leaving_out_the_head_is_refused_with_a_way_to_do_it():
    with pytest.raises(ConfigError, match=r"--num-cpus=0\), or use RayDataExecutor"):
        XennaExecutor(ignore_head_node=True)


@pytest.mark.parametrize(
    ("cpus", "num_tasks", "node_cpus", "workers"),
    [
        (1, 3, (64,), 3),  # 60 would have nothing to do
        (1, 60, (64,), None),
        (1, 2, (2, 2), None),  # 1.9 cores on each machine are room for one worker each
        (4, 3, (32,), 3),
        (0.5, 3, (2,), None),
    ],
)
def test_no_more_workers_are_started_than_there_are_tasks(cpus, num_tasks, node_cpus, workers):
    (group,) = groups(_Plain().with_(resources=Resources(cpus=cpus)))

    assert enough_workers(XennaConfig(), group, num_tasks, node_cpus) == workers
