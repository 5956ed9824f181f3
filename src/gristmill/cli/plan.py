"""`gristmill plan`: what would run. Starts nothing and writes nothing."""

from typing import Annotated

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
    """Show what a recipe would do: stages, fused groups, inputs."""
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
    if not as_json:
        typer.echo(made.describe())
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
    answer(document)
