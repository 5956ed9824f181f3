"""`gristmill stages`: what a recipe can be made of."""

import inspect
from typing import Annotated

import typer


def stages(
    name: Annotated[str | None, typer.Argument(help="A stage or filter to show with its parameters.")] = None,
) -> None:
    """List stages and filters, or show one with its parameters."""
    from gristmill.config.catalog import filters, find_class
    from gristmill.config.catalog import stages as known_stages

    if name is not None:
        typer.echo(describe_class(find_class(name, who="gristmill stages")))
        return
    for title, classes in (("Stages", known_stages()), ("Filters, for ScoreFilter and Filter", filters())):
        typer.echo(f"{title}:")
        width = max(map(len, classes))
        for each, cls in sorted(classes.items()):
            typer.echo(f"  {each:{width}}  {first_line(cls)}")
    typer.echo("`gristmill stages NAME` shows the parameters.")


def describe_class(cls: type) -> str:
    """Return the name, the documentation and a line for each parameter with its type and default."""
    lines = [f"{cls.__module__}.{cls.__qualname__}", "", inspect.getdoc(cls) or "", "", "Parameters:"]
    parameters = inspect.signature(cls).parameters.values()
    shown = [f"  {parameter}" for parameter in parameters if not parameter.name.startswith("_")]
    return "\n".join([*lines, *shown] if shown else [*lines[:-1], "No parameters."])


def first_line(cls: type) -> str:
    """The first sentence of a class's documentation."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
