"""`gristmill shards`: whether every shard of a run has ended, and what they add up to."""

from typing import Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug


def shards(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="The --output of the sharded run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the books as one line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Account for every shard of a run made with --array. Exits with 1 if one is missing."""
    from gristmill.config.shard_books import add_up
    from gristmill.metrics.tally import metric_lines

    books = add_up(output)
    if as_json:
        answer(books.to_json())
    else:
        for index, state in books.unfinished.items():
            typer.echo(f"shard {index} of {books.count}: {state}")
        typer.echo(f"{books.count - len(books.unfinished)} of {books.count} shards finished")
        typer.echo(", ".join(f"{number:,} {name}" for name, number in books.totals.items()))
        for stage in books.own:
            for line in metric_lines(stage, books.metrics.get(stage, {}), books.observed.get(stage, {})):
                typer.echo(line)
        if books.unfinished:
            typer.echo(f"start again with: --array={','.join(map(str, books.unfinished))}")
    if not books.complete:
        raise typer.Exit(1)
