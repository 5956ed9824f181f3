"""How help looks: commands in groups, no sentence cut off, examples at the end, colour where somebody can see it.

typer's own help with rich takes twice as long to appear; its plain help cuts sentences. This is the plain one, with a
new layout. No command and no option is defined here.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import typer
from typer.core import TyperCommand, TyperGroup

WIDEST = 100  # columns: longer lines are hard to read
NARROWEST = 40
_HEADING, _NAME, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"
# What typer says about the range of a number; outside it, an error says so.
_RANGE = re.compile(r"  \[(?:[\d.]+<=)?x[<>]=[\d.]+\]|; (?:[\d.]+<=)?x[<>]=[\d.]+(?=\])")
_HEADING_LINE = re.compile(r"^(?:Usage:|[A-Z][\w ,]*:$)", re.MULTILINE)
_NAME_COLUMN = re.compile(r"^  (-{1,2}[\w-]+(?:, --[\w-]+)?(?: / --[\w-]+)?|[\w-]+)(?=  |$| [A-Z<\[])", re.MULTILINE)

# In the order of a first day. What is in none of them comes last.
GROUPS = {
    "Start here": ("init", "recipes", "stages", "plan", "run", "doctor", "completion"),
    "Watch a run and understand it": ("status", "dashboard", "report", "explain", "diff", "trace", "replay"),
    "Get data and look at it": ("fetch", "inspect"),
    "Duplicates, benchmarks, mixtures": ("dedup", "decontaminate", "mix"),
    "Thresholds and models": ("score", "rethreshold", "train-classifier", "models"),
    "Clusters and monitoring": ("slurm", "shards", "simulate", "monitoring"),
}

EXAMPLES = {
    "": ("gristmill init", "gristmill run basic-english --input raw --output clean"),
    "init": ("gristmill init", "gristmill init experiments/first --recipe fineweb"),
    "recipes": ("gristmill recipes", "gristmill recipes show basic-english > mine.yaml"),
    "recipes list": ("gristmill recipes list",),
    "recipes show": ("gristmill recipes show basic-english > mine.yaml",),
    "stages": ("gristmill stages", "gristmill stages JsonlReader"),
    "plan": ("gristmill plan basic-english --input raw --output clean",),
    "run": (
        "gristmill run basic-english --input raw --output clean",
        "gristmill run mine.yaml -i 'raw/*.jsonl.gz' -o clean --set min_words=20",
        "gristmill run mine.yaml -i raw -o trial --sample 1000 --rejects rejects",
        "gristmill run mine.yaml -i raw -o clean --executor ray",
    ),
    "fetch": (
        "gristmill fetch https://example.org/a.warc.gz --to raw",
        "gristmill fetch crawl.yaml --output clean --dry-run",
    ),
    "doctor": ("gristmill doctor",),
    "completion": ('eval "$(gristmill completion bash)"',),
    "status": ("gristmill status clean", "gristmill status clean --watch"),
    "dashboard": ("gristmill dashboard clean", "gristmill dashboard clean trial --port 8080"),
    "report": (
        "gristmill report clean",
        "gristmill report clean --output report.html --no-examples",
        "gristmill report clean --json | jq .runs[0].verdict",
    ),
    "explain": (
        "gristmill explain clean doc-17",
        "gristmill explain clean --source raw/part-003.jsonl:812 --json",
    ),
    "diff": ("gristmill diff old new", "gristmill diff old new --ids"),
    "trace": ("gristmill trace clean", "gristmill trace clean -o slow.json --from 60 --to 120"),
    "replay": ("gristmill replay clean --check",),
    "inspect": (
        "gristmill inspect raw --head 5",
        """gristmill inspect raw --where 'score < 0.2 and "http" in text'""",
        "gristmill inspect part-0.parquet --stats",
        "gristmill inspect raw --diff clean --id-field id",
        "gristmill inspect raw --labels labels",
        "gristmill inspect raw --web",
    ),
    "dedup": ("gristmill dedup fuzzy --input clean --output distinct",),
    "dedup exact": ("gristmill dedup exact --input raw --output distinct",),
    "dedup fuzzy": (
        "gristmill dedup fuzzy --input raw --output distinct --id-field id",
        "gristmill dedup fuzzy -i raw -o found --threshold 0.7 --dry-run",
    ),
    "dedup semantic": ("gristmill dedup semantic -i embedded -o distinct --clusters 100",),
    "dedup parts": ("gristmill dedup parts --input raw --output distinct --unit paragraph",),
    "decontaminate": ("gristmill decontaminate -i raw -o clean --benchmarks benchmarks/",),
    "mix": ("gristmill mix --config mixture.yaml --output mixed", "gristmill mix -c mixture.yaml --dry-run"),
    "score": ("gristmill score basic-english --input raw --output scored",),
    "rethreshold": ("gristmill rethreshold basic-english scored --set word_count.min_words=20",),
    "train-classifier": ("gristmill train-classifier --positive good --negative bad --output model",),
    "models": ("gristmill models list", "gristmill models fetch OWNER/NAME --to models/name"),
    "models list": ("gristmill models list",),
    "models fetch": ("gristmill models fetch OWNER/NAME --to models/name",),
    "models where": ("gristmill models where OWNER/NAME",),
    "models check": ("gristmill models check",),
    "monitoring": ("gristmill monitoring init monitoring",),
    "monitoring init": ("gristmill monitoring init monitoring",),
    "slurm": ("gristmill slurm mine.yaml -i raw -o clean --array 64 --time 4:00:00",),
    "shards": ("gristmill shards clean",),
    "simulate": ("gristmill simulate clean --what-if nodes=2x",),
}


class Formatter(Protocol):
    """What click gives to write help with; which click it is depends on the version of typer."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30) -> None: ...
    def write(self, string: str) -> None: ...


class HelpCommand(TyperCommand):
    """A command with help as described above."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return usage_pieces(self)

    def format_options(self, ctx: Any, formatter: Formatter) -> None:
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Formatter) -> None:
        write_examples(ctx, formatter)

    def get_help(self, ctx: Any) -> str:
        return coloured(super().get_help(ctx))


class HelpGroup(TyperGroup):
    """A group of commands with help as described above."""

    def format_options(self, ctx: Any, formatter: Formatter) -> None:
        self.format_commands(ctx, formatter)  # what people look for
        write_options(self, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Formatter) -> None:
        shown = {name: command for name, command in self.commands.items() if not command.hidden}
        width = max(map(len, shown), default=0)
        for title, names in grouped(list(shown)):
            rows = [(f"{name:{width}}", first_sentence(shown[name].help or "")) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Formatter) -> None:
        write_examples(ctx, formatter)

    def get_help(self, ctx: Any) -> str:
        return coloured(super().get_help(ctx))


def dress(app: typer.Typer) -> None:
    """Give every command and group of an app this help."""
    app.info.cls = HelpGroup
    # --max_quarantined is accepted as --max-quarantined, and train_classifier as train-classifier.
    app.info.context_settings = {"max_content_width": WIDEST, "token_normalize_func": hyphenated}
    for command in app.registered_commands:
        command.cls = HelpCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.cls = HelpGroup
            dress(group.typer_instance)


def hyphenated(name: str) -> str:
    """The name of a command or an option as we write it."""
    return name.replace("_", "-")


def grouped(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The commands of the program by what they are for; those of a group as they are."""
    known = [name for group in GROUPS.values() for name in group]
    rest = [name for name in names if name not in known]
    for title, group in GROUPS.items():
        found = [name for name in group if name in names]
        if found:
            yield title, found
    if rest:
        yield ("Commands" if len(rest) == len(names) else "More"), rest


def first_sentence(text: str) -> str:
    """The first sentence of a text, whole.

    >>> first_sentence("Look at files (.gz, .zst) of any size. More.")
    'Look at files (.gz, .zst) of any size.'
    """
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", paragraph, maxsplit=1)[0]


def usage_pieces(command: Any) -> list[str]:
    """The words behind the name of a command in `Usage:`."""
    pieces = ["[OPTIONS]"]
    for param in command.params:
        if param.param_type_name == "argument":
            name = argument_name(param) + ("..." if param.nargs == -1 else "")
            pieces.append(name if param.required else f"[{name}]")
    return pieces


def argument_name(param: Any) -> str:
    """What an argument is called, without marks for how often it may be given."""
    return str(param.metavar or param.name.upper()).strip("[].…")


def write_options(command: Any, ctx: Any, formatter: Formatter) -> None:
    """Arguments, options, and apart from them those about Prometheus, which few need."""
    parts: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options for Prometheus": []}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is None:
            continue
        names, said = record
        if param.param_type_name == "argument":
            parts["Arguments"].append((argument_name(param), said.replace("  [required]", "")))
        else:
            part = "Options for Prometheus" if param.name.startswith("metrics_") else "Options"
            parts[part].append((names, _RANGE.sub("", said)))
    for title, rows in parts.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def write_examples(ctx: Any, formatter: Formatter) -> None:
    """The examples of a command, as they are typed: not wrapped, so that they can be copied."""
    path = ctx.command_path.partition(" ")[2]
    if path in EXAMPLES:
        formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in EXAMPLES[path]))


def coloured(text: str) -> str:
    """Headings bold and names in colour, on a terminal."""
    if not has_colour():
        return text
    text = _HEADING_LINE.sub(lambda found: f"{_HEADING}{found[0]}{_PLAIN}", text)
    return _NAME_COLUMN.sub(lambda found: f"  {_NAME}{found[1]}{_PLAIN}", text)


def has_colour() -> bool:
    """Whether standard output shows colours, and its user wants some (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def listed(rows: Iterable[tuple[str, str]], *, indent: str = "") -> Iterator[str]:
    """Names and what is said about them, in lines that fit the terminal; in a pipe each is one line, for grep."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    columns = terminal_columns()
    for name, said in rows:
        head = f"{indent}{name:{width}}  "
        wrapped = textwrap.wrap(said, max(NARROWEST // 2, columns - len(head))) if columns < sys.maxsize else [said]
        first, *rest = wrapped or [""]
        shown = f"{_NAME}{name:{width}}{_PLAIN}" if has_colour() else f"{name:{width}}"
        yield f"{indent}{shown}  {first}".rstrip()
        yield from (f"{'':{len(head)}}{line}" for line in rest)


def reflowed(text: str) -> str:
    """Documentation in lines that fit the terminal; in a pipe, and where lines are indented, it stays as it is."""
    if not sys.stdout.isatty():
        return text
    columns, paragraphs = min(terminal_columns(), WIDEST), text.split("\n\n")
    # A table has names in quotes and blanks behind them, or is indented.
    is_table = [re.search(r"^(?:`[^`]+`)? {2,}", each, re.MULTILINE) is not None for each in paragraphs]
    filled = [each if table else textwrap.fill(each, columns) for each, table in zip(paragraphs, is_table, strict=True)]
    return "\n\n".join(filled)


def terminal_columns() -> int:
    """How wide a line may be; in a pipe as wide as it is."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else sys.maxsize
