"""`gristmill plan`: what would run. Starts nothing and writes nothing."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import (
    AllowModules,
    Debug,
    ExecutorName,
    Inputs,
    MemoryLimit,
    Output,
    RecipeArgument,
    Settings,
    Workers,
)

if TYPE_CHECKING:
    from gristmill.engine.plan import Plan
    from gristmill.stages.text.download.base.forecast import Forecast


def plan(
    recipe: RecipeArgument,
    inputs: Inputs = None,
    output: Output = None,
    settings: Settings = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    allow_module: AllowModules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show what a recipe would do: stages, fused groups, inputs; files and bytes to fetch, without fetching them."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.cli.recipe_values import recipe_values
    from gristmill.config.shipped import find_recipe
    from gristmill.engine.plan import join_neighbours
    from gristmill.secrets import without_secrets

    found = find_recipe(recipe)
    values = recipe_values(inputs or [], output, settings or [])
    allowed = allow_module or []
    chosen = choose_executor(
        found, values, name=executor, workers=workers, memory_limit=memory_limit, allow_modules=allowed
    )
    made = found.build(values, allow_modules=allowed).plan(executor=chosen)
    fetched = _to_fetch(made)
    if not as_json:
        typer.echo(made.describe())
        if fetched is not None:
            typer.echo(str(fetched))
        return
    document = {
        "name": made.name,
        "groups": [list(group.names) for group in made.groups],
        "passes": [
            list(group.names[first : first + length])
            for group in made.groups
            for first, (length, _) in join_neighbours(group.stages).items()
        ],
        "partitions": len(made.sources),
        "input_bytes": made.input_bytes,
        "input_files": [without_secrets(path) for path, _, _ in made.inputs],
        "output_directories": list(made.output_directories),
        "fingerprint": made.fingerprint,
    }
    if fetched is not None:
        document["to_fetch"] = {**vars(fetched), "is_exact": fetched.is_exact}
    answer(document)


def _to_fetch(made: "Plan") -> "Forecast | None":
    """How much would be fetched, asked of servers; None for a recipe that fetches nothing, as most do."""
    if not any("download" in type(stage).__name__.lower() for group in made.groups for stage in group.stages):
        return None  # and loads nothing to find that out
    from gristmill.stages.text.download.base.forecast import forecast

    return forecast([stage for group in made.groups for stage in group.stages], made.inputs)
