"""Shipped recipes build, have a description, and are found by name."""

import pytest

from gristmill.config.run import create_executor_from_yaml, create_pipeline_from_yaml
from gristmill.config.shipped import find_recipe, shipped_recipes
from gristmill.errors import ConfigError


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_shipped_recipe_builds_and_says_what_it_does(name, tmp_path):
    recipe = find_recipe(name)
    needed = dict.fromkeys(recipe.variable_names() - set(recipe.variables), "any")
    needed |= {"benchmarks": "any"} if "benchmarks" in recipe.variables else {}  # for a stage that is there only then
    pipeline = recipe.build({**needed, "input": str(tmp_path), "output": str(tmp_path / "out")})

    assert recipe.name == name
    assert recipe.description
    assert len(pipeline.stages) == len(recipe.stages)


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(ConfigError, match=r"got 'basic-englsh'; did you mean 'basic-english'\?"):
        find_recipe("basic-englsh")


def test_a_misspelt_file_names_the_one_beside_it(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine")

    with pytest.raises(ConfigError, match=r"did you mean '.*mine\.yaml'\?"):
        find_recipe(str(tmp_path / "mien.yaml"))


def test_a_mapping_makes_a_pipeline_as_its_yaml_would():
    target = "gristmill.stages.text.filters.heuristic.BulletsFilter"
    document = {"stages": [{"ScoreFilter": {"filter_obj": {"_target_": target}}}]}

    assert [stage.name for stage in create_pipeline_from_yaml(document).stages] == ["bullets"]


def test_an_executor_is_made_as_the_document_says_or_the_default():
    stages = [{"ScoreFilter": {"filter_obj": "BulletsFilter"}}]
    named = create_executor_from_yaml({"stages": stages, "executor": {"LocalExecutor": {"num_workers": 1}}})
    default = create_executor_from_yaml({"stages": stages})

    assert type(named) is type(default)


def test_an_unknown_executor_names_the_nearest():
    document = {"stages": ["x"], "executor": "locl"}

    with pytest.raises(ConfigError, match=r"got 'locl'; did you mean 'local'\?"):
        create_executor_from_yaml(document)
