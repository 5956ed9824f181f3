"""The reference page of the command line, from the commands themselves."""

from collections.abc import Iterator

import typer
from typer.core import TyperCommand, TyperGroup

from docs_site.pages import cell, code, prose, table
from gristmill.cli.main import app

EXIT_CODES = (
    ("0", "done, and the books balance"),
    ("1", "the run failed: a stage lets nothing pass, a disk or a store failed, an input changed"),
    ("2", "a mistake in the command, the recipe or the paths; nothing was started"),
    ("3", "done, but more documents were quarantined than `--max-quarantined` allows"),
    ("130", "stopped with Ctrl-C; the same command continues"),
)


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the page of the command line as (path, text)."""
    root = typer.main.get_command(app)
    commands = list(_commands(root, "gristmill"))
    overview = [[f"[{name}](#{name.replace(' ', '-')})", cell(prose(_help(command)[0]))] for name, command in commands]
    text = "# Command line\n\n" + table(("command", "what it does"), overview)
    text += f"\n## Exit codes\n\n{table(('code', 'meaning'), EXIT_CODES)}\n"
    yield "reference/commands.md", text + "".join(_section(name, command) for name, command in commands)


def _commands(command: object, path: str) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name, below in sorted(command.commands.items()):
            if not below.hidden:
                yield from _commands(below, f"{path} {name}")
    elif isinstance(command, TyperCommand):
        yield path, command


def _help(command: TyperCommand) -> tuple[str, str]:
    """The first paragraph of the help, in one line, and the rest."""
    head, _, rest = (command.help or "").replace("\b", "").partition("\n\n")
    return " ".join(head.split()), rest


def _section(name: str, command: TyperCommand) -> str:
    head, rest = _help(command)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [[code(record[0]), cell(prose(record[1]))] for record in records if record and "--help" not in record[0]]
    shown = f"## {name}\n\n{prose(head)}\n\n```text\n{name} {usage}\n```\n\n"
    return f"{shown}{prose(rest)}\n\n{table(('option', 'meaning'), rows)}\n"
