"""An option an executor does not have is an error that says who has it, or which of its own was meant."""

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.config.run import create_executor_from_yaml
from gristmill.errors import ConfigError


def test_the_executor_that_has_the_option_is_named():
    with pytest.raises(ConfigError, match=r"^RayActorPoolExecutor: .*; got 'num_workers'\. LocalExecutor has it$"):
        RayActorPoolExecutor({"num_workers": 3})
    with pytest.raises(ConfigError, match=r"^LocalExecutor: .*; got 'ignore_head_node'\. .*RayActorPoolExecutor"):
        LocalExecutor.from_options({"ignore_head_node": True})


def test_a_misspelt_option_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="got 'memory_limitt'; did you mean 'memory_limit'"):
        RayActorPoolExecutor({"memory_limitt": "1GB"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"execution_mode": "lazy"}, 'expected execution_mode "streaming" or "batch"; got \'lazy\''),
        ({"memory_limit": "lots"}, "memory_limit"),
        ({"gpu_memory_gb": 0}, "expected gpu_memory_gb > 0; got 0"),
    ],
)
def test_values_are_checked_before_anything_runs(config, message):
    with pytest.raises(ConfigError, match=message):
        RayActorPoolExecutor(config)


def test_a_recipe_gives_options_by_name_whether_they_are_parameters_or_not():
    executor = create_executor_from_yaml(
        {"name": "r", "stages": ["AddId"], "executor": {"ray": {"memory_limit": "1GB", "ignore_head_node": True}}}
    )

    assert isinstance(executor, RayActorPoolExecutor)
    assert (executor.config.memory_limit, executor.ignore_head_node) == ("1GB", True)
