"""`choose_executor`: where a recipe runs, from the options and from the recipe."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.config.recipe import Recipe


def choose_executor(
    recipe: "Recipe",
    values: Mapping[str, object],
    *,
    name: str | None = None,
    workers: int | None = None,
    memory_limit: str | None = None,
) -> "BaseExecutor":
    """Return the executor the options ask for, else the recipe's, else the default. Options win over the recipe."""
    from gristmill.backends.base import BaseExecutor
    from gristmill.config.build import construct
    from gristmill.config.catalog import find_executor
    from gristmill.errors import ConfigError

    given = {"num_workers": workers, "memory_limit": memory_limit}
    parameters = {key: value for key, value in given.items() if value is not None}
    chosen = recipe.build_executor(values) if name is None and not parameters else None
    if chosen is None:
        chosen = construct(find_executor(name or "local", who="--executor"), parameters, who="gristmill")
    if not isinstance(chosen, BaseExecutor):
        raise ConfigError(f"--executor: expected a BaseExecutor; got {chosen!r}")
    return chosen
