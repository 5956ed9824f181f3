"""`gristmill score`: measure every document with the filters of a recipe and keep the measures as columns."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import (
    AllowModules,
    AsJson,
    Debug,
    Fresh,
    Inputs,
    MemoryLimit,
    Quiet,
    RecipeArgument,
    Settings,
    Workers,
)
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.metrics.metrics_options import MetricsOptions


@with_metrics
def score(
    recipe: RecipeArgument,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where the scored documents go.")],
    inputs: Inputs = None,
    settings: Settings = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    allow_module: AllowModules = None,
    fresh: Fresh = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Write all documents as Parquet, with a column for each filter of the recipe; drop none."""
    from gristmill.cli.recipe_values import recipe_values
    from gristmill.config.shipped import find_recipe

    found = find_recipe(recipe)
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.cli.run import default_run_dir
    from gristmill.workflows.thresholds import forget, noted, score_pipeline

    allowed = allow_module or []
    values = recipe_values(inputs or [], output, settings or [])
    recipe_pipeline = found.build(values, allow_modules=allowed)
    pipeline = score_pipeline(recipe_pipeline, output)
    executor = choose_executor(found, values, workers=workers, memory_limit=memory_limit, allow_modules=allowed)
    listed = pipeline.plan(executor).inputs
    forget(output)
    with shown(metrics, executor, quiet=quiet) as (_, observer):
        result = pipeline.run(
            executor=executor, checkpoint_path=default_run_dir(output), fresh=fresh, observer=observer, quiet=True
        )
    noted(recipe_pipeline, result, listed, values).write(output)
    if not quiet:
        told = f"{result.written:,} documents scored. Try thresholds: gristmill rethreshold {recipe} {output}"
        say(told)
    if as_json:
        answer(result.to_json())
