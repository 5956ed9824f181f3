"""`gristmill stages`: what a recipe can be made of."""

import dataclasses
import inspect
from typing import Annotated

import typer

from gristmill.cli.help_page import listed, reflowed


def stages(
    name: Annotated[
        str | None, typer.Argument(help="A stage, filter, modifier or rule set to show with its parameters.")
    ] = None,
) -> None:
    """List stages, filters, modifiers and rule sets, or show one with its parameters."""
    from gristmill.config.catalog import clients, filters, find_class, modifiers, rule_sets
    from gristmill.config.catalog import stages as known_stages

    if name is not None:
        typed = [name.rpartition(".")[0]]  # whoever types the path of a class may have its module imported
        typer.echo(describe_class(find_class(name, who="gristmill stages", allow_modules=typed)))
        return
    parts = {
        "Filters, for ScoreFilter": filters(),
        "Modifiers, for Modify": modifiers(),
        "Rule sets, for ApplyRules": rule_sets(),
        "Clients, for stages that ask a language model": clients(),
    }
    for title, classes in {"Stages": without_parts(known_stages()), **parts}.items():
        typer.echo(f"{title}:")
        for line in listed(((each, first_line(cls)) for each, cls in sorted(classes.items())), indent="  "):
            typer.echo(line)
    typer.echo("`gristmill stages NAME` shows the parameters.")


def without_parts(classes: dict[str, type]) -> dict[str, type]:
    """Leave out what only a composite uses: JsonlReaderStage, if JsonlReader is there."""
    return {name: cls for name, cls in classes.items() if not (name.endswith("Stage") and name[:-5] in classes)}


def describe_class(cls: type) -> str:
    """Return the name, the documentation and a line for each parameter with its type and default."""
    from gristmill.config.type_hints import describe_hint, parameter_hints

    hints = parameter_hints(cls)
    parameters = [p for p in inspect.signature(cls).parameters.values() if not p.name.startswith("_")]
    lines = [f"{cls.__module__}.{cls.__qualname__}", "", reflowed(inspect.getdoc(cls) or ""), ""]
    lines.append("Parameters:" if parameters else "No parameters.")
    kinds = {p.name: describe_hint(hints[p.name]) if p.name in hints else "anything" for p in parameters}
    rows = [(p.name, f"{kinds[p.name]}, {describe_default(cls, p)}") for p in parameters]
    return "\n".join([*lines, *listed(rows, indent="  ")])


def describe_default(cls: type, parameter: inspect.Parameter) -> str:
    """Say the default, even one that a dataclass makes for each new object."""
    if parameter.default is inspect.Parameter.empty:
        return "required"
    factories = {f.name: f.default_factory for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    factory = factories.get(parameter.name, dataclasses.MISSING)
    return f"default {(parameter.default if factory is dataclasses.MISSING else factory())!r}"


def first_line(cls: type) -> str:
    """The first sentence of a class's documentation."""
    return (inspect.getdoc(cls) or "").partition("\n")[0]
