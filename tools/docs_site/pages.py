"""Markdown from docstrings, signatures and parameters: what all pages of the reference share."""

import dataclasses
import inspect
import re
from collections.abc import Iterable, Sequence

from gristmill.cli.stages import describe_default
from gristmill.config.type_hints import describe_hint, parameter_hints

_SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_ENTRY = re.compile(r"(`[^`]+`)\s{2,}(\S.*)")  # a line of a list of names, as docstrings have it
_BLOCK_INDENT = "    "
_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def prose(docstring: str | None) -> str:
    r"""Return a docstring as Markdown: code stays as it is, and what looks like a tag elsewhere is text.

    >>> prose("Write `<path>/x` for every <name>.")
    'Write `<path>/x` for every &lt;name>.'
    >>> prose("`low`   the least\n        that is kept\n`high`  the greatest")
    '\n- `low` the least that is kept\n- `high` the greatest'
    """
    text: list[str] = []
    in_list = False
    for line in inspect.cleandoc(docstring or "").splitlines():
        is_indented = line.startswith(_BLOCK_INDENT)
        if found := _ENTRY.fullmatch(line):
            text += [] if in_list else [""]
            text.append(f"- {_escaped(found[1])} {_escaped(found[2])}")
            in_list = True
        elif in_list and is_indented:
            text[-1] += f" {_escaped(line.strip())}"
        else:
            begins_code = (
                is_indented and bool(text) and text[-1].strip() != "" and not text[-1].startswith(_BLOCK_INDENT)
            )
            text += [""] if begins_code or (in_list and line.strip()) else []
            text.append(line if is_indented else _escaped(line))
            in_list = False
    return "\n".join(text)


def _escaped(text: str) -> str:
    parts, last = [], 0
    for span in _SPAN.finditer(text):
        parts += [text[last : span.start()].replace("<", "&lt;"), span[0]]
        last = span.end()
    return "".join([*parts, text[last:].replace("<", "&lt;")])


def first_sentence(thing: object) -> str:
    """The first line of a docstring, to stand in a table."""
    return cell(_escaped(inspect.cleandoc(inspect.getdoc(thing) or "").partition("\n")[0]))


def cell(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as code in a cell, whatever it holds; none if it is empty."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    return cell(f"{fence} {text} {fence}" if fence == "``" else f"{fence}{text}{fence}")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing if there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) + "\n"


def parameters(cls: type) -> str:
    """The parameters of a class with type and default, as a table, or the sentence that there are none."""
    hints = parameter_hints(cls)
    rows = []
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.name.startswith("_"):
            continue
        stars = _STARS.get(parameter.kind.name, "")
        kind = describe_hint(hints[parameter.name]) if parameter.name in hints else "anything"
        default = "" if stars else describe_default(cls, parameter).removeprefix("default ")
        rows.append(
            [f"`{stars}{parameter.name}`", cell(kind), "**required**" if default == "required" else code(default)]
        )
    return table(("parameter", "type", "default"), rows) or "No parameters.\n"


def class_section(name: str, cls: type, *, level: int = 3, extra: str = "") -> str:
    """A heading, the import path, the docstring and the parameters of a class."""
    home = f"`{public_home(cls)}`"
    return f"{'#' * level} {name}\n\n{home}\n\n{prose(own_doc(cls))}\n\n{extra}{parameters(cls)}\n"


def own_doc(cls: type) -> str | None:
    """The docstring of a class; nothing for the signature that a dataclass without one is given."""
    doc = cls.__doc__
    generated = dataclasses.is_dataclass(cls) and doc is not None and doc.startswith(f"{cls.__name__}(")
    return inspect.getdoc(cls) if not generated else None


def public_home(cls: type) -> str:
    """The shortest path a user may import a class from: the outermost package above it that exports it."""
    import importlib

    parts = cls.__module__.split(".")
    homes = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
    for home in homes[1:]:
        module = importlib.import_module(home)
        if cls.__name__ in getattr(module, "__all__", ()) and getattr(module, cls.__name__) is cls:
            return f"{home}.{cls.__name__}"
    return f"{cls.__module__}.{cls.__qualname__}"
