"""`choose_executor`: where a recipe or a workflow runs, from the options and from the recipe."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.config.recipe import Recipe


def choose_executor(
    recipe: "Recipe | None" = None,
    values: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    workers: int | None = None,
    memory_limit: str | None = None,
    allow_modules: Sequence[str] = (),
) -> "BaseExecutor":
    """Return the executor the options ask for, else the recipe's, else the default. Options win over the recipe."""
    from gristmill.backends.base import BaseExecutor
    from gristmill.config.build import construct
    from gristmill.config.catalog import find_executor
    from gristmill.errors import ConfigError

    given = {"num_workers": workers, "memory_limit": memory_limit}
    parameters = {key: value for key, value in given.items() if value is not None}
    chosen = None
    if name is None and recipe is not None:
        chosen = recipe.build_executor(values or {}, allow_modules=allow_modules)
    if chosen is not None and parameters:
        chosen = _changed(chosen, parameters)
    if chosen is None:
        # Whoever types the path of an executor trusts it.
        found = find_executor(name or "local", who="--executor", allow_modules=[(name or "").rpartition(".")[0]])
        chosen = construct(found, parameters, who="gristmill")
    if not isinstance(chosen, BaseExecutor):
        raise ConfigError(f"--executor: expected a BaseExecutor; got {chosen!r}")
    return chosen


def _changed(executor: object, parameters: Mapping[str, object]) -> object:
    """The recipe's executor with some parameters replaced; the others stay as the recipe has them."""
    from gristmill.errors import ConfigError

    if not is_dataclass(executor) or not parameters.keys() <= {field.name for field in fields(executor)}:
        options = ", ".join(f"--{name.removeprefix('num_').replace('_', '-')}" for name in parameters)
        raise ConfigError(f"{options}: expected a recipe whose executor takes this; got {executor!r}")
    return replace(executor, **parameters)  # type: ignore[type-var]  # an instance: a class would not be an executor
