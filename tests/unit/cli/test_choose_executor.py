"""Options win over the recipe, one by one."""

from gristmill.backends.local import LocalExecutor
from gristmill.cli.choose_executor import choose_executor
from gristmill.config.recipe import Recipe

RECIPE = Recipe(
    "r", ({"JsonlReader": {"file_paths": "in"}},), executor={"LocalExecutor": {"num_workers": 1, "gpus": 2}}
)


def test_an_option_changes_only_its_own_parameter_of_the_recipes_executor():
    chosen = choose_executor(RECIPE, {}, memory_limit="1GB")

    assert chosen == LocalExecutor(num_workers=1, gpus=2, memory_limit="1GB")


def test_naming_an_executor_replaces_that_of_the_recipe():
    assert choose_executor(RECIPE, {}, name="local", workers=3) == LocalExecutor(num_workers=3)
