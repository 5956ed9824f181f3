"""Pipelines and executors straight from YAML, for scripts.

The documents may use either form of a stage, `Name: {parameters}` or `_target_: dotted.path`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.config.recipe import Recipe
from gristmill.config.shipped import find_recipe

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

RecipeLike = str | Path | Mapping[str, object]


def create_pipeline_from_yaml(
    config: RecipeLike, *, allow_modules: Sequence[str] = (), **variables: object
) -> "Pipeline":
    """Build a pipeline from a recipe's path or shipped name, or from the mapping YAML would give.

    `allow_modules` are the modules whose stages, filters, modifiers and functions it may name beside gristmill's.

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
        return Recipe.from_document(dict(config), source="given as a mapping")
    return find_recipe(str(config))
