"""`gristmill init`: something to start from. Writes a recipe with comments and a few documents; replaces nothing."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.errors import ConfigError

RECIPE, SAMPLE = "recipe.yaml", "data/sample.jsonl"


def init(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where to write. Default: here.")] = ".",
    recipe: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start from this shipped recipe instead of the commented one.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a recipe with comments and a few documents to try it on. Nothing that exists is replaced."""
    from gristmill.config.shipped import STARTER, recipe_path

    place = Path(directory).expanduser()
    text = (STARTER / RECIPE if recipe is None else recipe_path(recipe)).read_text(encoding="utf-8")
    contents = {RECIPE: text, SAMPLE: (STARTER / "sample.jsonl").read_text(encoding="utf-8")}
    there = [str(place / name) for name in contents if (place / name).exists()]
    if there or (place.exists() and not place.is_dir()):
        found = " and ".join(there) or f"{place}, which is a file"
        raise ConfigError(
            f"init: expected a directory without {' and '.join(contents)}; got {found}. Nothing was written"
        )
    for name, content in contents.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:  # x: also if somebody else has just written it
            file.write(content)
        typer.echo(f"wrote {path}")
    typer.echo("\n" + next_steps(place))


def next_steps(place: Path) -> str:
    """What to type next, ready to be copied."""
    names = {name: shlex.quote(str(place / name)) for name in (RECIPE, "data", "clean", "report.html")}
    run = f"{names[RECIPE]} --input {names['data']} --output {names['clean']}"
    steps = [
        ("look at the data", f"gristmill inspect {names['data']} --head 3"),
        ("see what would run", f"gristmill plan {run}"),
        ("run it", f"gristmill run {run}"),
        ("ask why a document is gone", f"gristmill explain {names['clean']} short"),
        ("read what happened", f"gristmill report {names['clean']} --output {names['report.html']}"),
    ]
    return "\n".join(["Next:", *(f"  # {what}\n  {command}" for what, command in steps)])
