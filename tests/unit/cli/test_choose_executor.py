"""Options win over the recipe, one by one."""

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.cli.choose_executor import choose_executor
from gristmill.config.catalog import find_executor
from gristmill.config.recipe import Recipe
from gristmill.config.shipped import recipe_path
from gristmill.errors import ConfigError

RECIPE = Recipe(
    "r", ({"JsonlReader": {"file_paths": "in"}},), executor={"LocalExecutor": {"num_workers": 1, "gpus": 2}}
)


def test_an_option_changes_only_its_own_parameter_of_the_recipes_executor():
    chosen = choose_executor(RECIPE, {}, memory_limit="1GB")

    assert chosen == LocalExecutor(num_workers=1, gpus=2, memory_limit="1GB")


def test_naming_an_executor_replaces_that_of_the_recipe():
    assert choose_executor(RECIPE, {}, name="local", workers=3) == LocalExecutor(num_workers=3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ray-data", "RayDataExecutor"), ("ray_data", "RayDataExecutor"), ("ray-actor-pool", "RayActorPoolExecutor")],
)
def test_an_executor_may_be_written_with_hyphens_or_underscores(name, expected):
    assert find_executor(name, who="").__name__ == expected


def test_a_recipe_may_be_written_with_hyphens_or_underscores():
    assert recipe_path("basic_english") == recipe_path("basic-english")


def test_an_unknown_executor_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"\(local, ray, ray-data, xenna\); got 'raydata'; did you mean 'ray-data'"):
        find_executor("raydata", who="--executor")
