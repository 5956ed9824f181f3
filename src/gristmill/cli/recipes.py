"""`gristmill recipes`: the recipes that come with the package."""

from typing import Annotated

import typer

from gristmill.cli.help_page import listed

app = typer.Typer(help="List the shipped recipes, or show one.", invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def recipes(context: typer.Context) -> None:
    """List the shipped recipes, or show one."""
    if context.invoked_subcommand is None:
        list_recipes()


@app.command("list")
def list_recipes() -> None:
    """List the shipped recipes."""
    from gristmill.config.shipped import find_recipe, shipped_recipes

    for line in listed((name, find_recipe(name).description) for name in shipped_recipes()):
        typer.echo(line)


@app.command("show")
def show(name: Annotated[str, typer.Argument(help="The name of a shipped recipe, or a file.")]) -> None:
    """Print a recipe: save it to a file to make it your own."""
    from gristmill.config.shipped import find_recipe, recipe_path

    find_recipe(name)  # a file that is not a recipe is refused
    typer.echo(recipe_path(name).read_text(encoding="utf-8"), nl=False)
