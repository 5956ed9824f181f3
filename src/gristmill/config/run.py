"""Pipelines and executors straight from YAML, for scripts; and a command for scripts from elsewhere.

The documents may use either form of a stage, `Name: {parameters}` or `_target_: dotted.path`.

    python -m gristmill.config.run --config-path=DIR --config-name=NAME key=value …

runs DIR/NAME.yaml as `gristmill run` would: its stages, or its `workflow`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.config.hydra_form import WORKFLOW, to_recipe_form
from gristmill.config.load_yaml import load_yaml, read_yaml_file
from gristmill.config.recipe import Recipe
from gristmill.config.shipped import find_recipe
from gristmill.errors import ConfigError, GristmillError, MissingDependency
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.pipeline.workflow import WorkflowBase

RecipeLike = str | Path | Mapping[str, object]


def create_pipeline_from_yaml(
    config: RecipeLike, *, allow_modules: Sequence[str] = (), **variables: object
) -> "Pipeline":
    """Build a pipeline from a recipe's path or shipped name, or from the mapping YAML would give.

    `allow_modules` are the modules whose stages, filters, modifiers and functions it may name besides gristmill's.

    >>> create_pipeline_from_yaml("basic-english", input="raw/", output="clean/").run()
    """
    return _recipe(config).build(variables, allow_modules=allow_modules)


def create_executor_from_yaml(config: RecipeLike, *, allow_modules: Sequence[str] = (), **variables: object) -> object:
    """Build the executor the document's `executor:` names, or the default one."""
    from gristmill.backends.default_executor import default_executor

    executor = _recipe(config).build_executor(variables, allow_modules=allow_modules)
    return default_executor() if executor is None else executor


def _recipe(config: RecipeLike) -> Recipe:
    if isinstance(config, Mapping):
        return Recipe.from_document(_plain(config), source="given as a mapping")
    return find_recipe(str(config))


def _plain(config: Mapping[str, object]) -> dict[str, object]:
    """A mapping as YAML would give it. OmegaConf's has lists of its own, and `???` where a value has to be given."""
    if type(config).__module__.partition(".")[0] != "omegaconf":
        return dict(config)
    from omegaconf import OmegaConf  # the mapping was made with it

    return cast("dict[str, object]", OmegaConf.to_container(config, resolve=False))


def main(arguments: Sequence[str]) -> int:
    """Run a YAML file; return the code to exit with."""
    parser = argparse.ArgumentParser("python -m gristmill.config.run", description="Run a pipeline or workflow of YAML")
    parser.add_argument("--config-path", "-cp", default=".", help="the directory of the file")
    parser.add_argument("--config-name", "-cn", required=True, help="its name; .yaml may be left out")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="a value for a key of the file")
    given = parser.parse_intermixed_args(arguments)
    try:
        _run_file(_file(Path(given.config_path).expanduser(), given.config_name), _values(given.overrides))
    except GristmillError as error:
        say(f"gristmill: {error}")
        return 2 if isinstance(error, ConfigError | MissingDependency) else 1
    return 0


def _file(directory: Path, name: str) -> Path:
    path = directory / name
    return path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml")


def _values(overrides: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"overrides: expected key=value; got {override!r}")
        values[name.lstrip("+")] = load_yaml(text, who=override) if text else ""
    return values


def _run_file(path: Path, values: dict[str, object]) -> None:
    if not path.is_file():
        raise ConfigError(f"--config-path, --config-name: expected a file; {str(path)!r} is not one")
    document = load_yaml(read_yaml_file(path, who=str(path)), who=str(path))
    if isinstance(document, Mapping) and WORKFLOW in document:
        _run_workflows(document, values, who=str(path))
        return
    recipe = Recipe.from_document(document, source=str(path))
    pipeline, executor = recipe.build(values), recipe.build_executor(values)
    result = pipeline.run(cast("BaseExecutor | None", executor))
    if not result.balanced:
        raise GristmillError(f"{path}: expected books that balance; they do not")


def _run_workflows(document: Mapping[object, object], values: dict[str, object], *, who: str) -> None:
    from gristmill.config.build import prepare, split_item
    from gristmill.config.catalog import find_workflow

    items = document[WORKFLOW]
    items = items if isinstance(items, list) else [items]
    # The same rules for variables as in a recipe, as if these were its stages.
    recipe = Recipe.from_document({"stages": items, **to_recipe_form(document, who=who)}, source=who)
    calls = []
    for item in recipe.substituted(values):
        name, parameters = split_item(item, who=who)
        calls.append(prepare(find_workflow(name, who=who), parameters, who=f"{who}: {name.rpartition('.')[2]}"))
    for call in calls:
        say(str(cast("WorkflowBase", call.make()).run()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
