r"""Macros of TeX: what `\newcommand` and `\def` define, and what a call becomes.

Text is replaced by text, where TeX replaces tokens by tokens. So a space is put where two of them would run together:
`\alpha#1` with `x` is `\alpha x`. Whatever cannot be replaced like that (programs, in short) is not a macro here.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

_SHORT_CHARS = 1000  # of a group whose end is looked for from its beginning
_MOST_LONG_GROUPS = 10_000
_MOST_DELIMITED = 2_000
_MOST_PARAMETERS = 9
_GROUP = re.compile(r"\\.|%[^\n]*|[{}]", re.DOTALL)
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_NAME = re.compile(r"\\(?:[a-zA-Z@]+|[^a-zA-Z])", re.DOTALL)
_PARAMETER = re.compile(r"#([1-9])")
_NO_ARGUMENTS = {"\\begin", "\\end", "\\par", "\\item"}  # a call before one of these is its author's mistake
_ENDS_IN_NAME = re.compile(r"\\[a-zA-Z@]+$")

# What makes a body a program rather than an abbreviation: its statements would be left in the text.
_PROGRAM = re.compile(
    r"\\(?:if(?!f(?![a-zA-Z]))|else(?![a-zA-Z])|fi(?![a-zA-Z])|csname|endcsname|expandafter|futurelet|noexpand|"
    r"global|catcode|advance|"
    r"newcommand|renewcommand|providecommand|def(?![a-zA-Z])|edef|gdef|xdef|let(?![a-zA-Z])|loop|repeat|relax|"
    r"setcounter|addtocounter|setlength|addtolength|settowidth|the(?![a-zA-Z])|@|makeatletter|hbox|vbox|hskip|vskip|"
    r"read|write|openout|immediate|special|lowercase|uppercase|string|meaning|jobname|numexpr|dimexpr|romannumeral)"
    r"|##"
)


@dataclass(frozen=True)
class Macro:
    """A macro. `pieces` are the texts around its arguments: the first stands before the first argument."""

    body: str
    num_arguments: int = 0
    default: str | None = None  # of the first argument, which is then optional
    pieces: tuple[str, ...] = ()

    @cached_property
    def is_program(self) -> bool:
        return _PROGRAM.search(self.body) is not None


class Definition(NamedTuple):
    """A definition, and where the text goes on after it."""

    name: str
    macro: Macro
    end: int


def skip_space(text: str, position: int) -> int:
    """Return where something other than white space begins; a blank line counts as that."""
    return _SPACE.match(text, position).end()  # type: ignore[union-attr]  # matches nothing at least


def group_end(text: str, start: int) -> int:
    """Return where the group that begins with this brace ends, just after its last brace; -1 if it does not end.

    Most groups are short. The ends of all long ones are found together, once: looking for each of them up to the end of
    the text would take a day for a file of a million braces that are never closed.
    """
    depth = 0
    for found in _GROUP.finditer(text, start, start + _SHORT_CHARS):
        mark = found.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if not depth:
                return found.end()
    return _long_groups(text).get(start, -1) if len(text) - start > _SHORT_CHARS else -1


@lru_cache(maxsize=4)
def _long_groups(text: str) -> dict[int, int]:
    """Where groups of more than a few characters begin and end; those nested too deeply are left out."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    too_deep = 0
    for found in _GROUP.finditer(text):
        mark = found.group()
        if mark == "{":
            too_deep += len(opened) >= _MOST_LONG_GROUPS
            if not too_deep:
                opened.append(found.start())
        elif mark == "}" and too_deep:
            too_deep -= 1
        elif mark == "}" and opened:
            begun = opened.pop()
            if found.end() - begun > _SHORT_CHARS and len(ends) < _MOST_LONG_GROUPS:
                ends[begun] = found.end()
    return ends


def forget_texts() -> None:
    """Let go of texts whose groups are remembered."""
    _long_groups.cache_clear()


def read_group(text: str, position: int) -> tuple[str, int] | None:
    """Return what is in the group that comes next, and where it ends; None if none does."""
    start = skip_space(text, position)
    if not text.startswith("{", start):
        return None
    end = group_end(text, start)
    return None if end < 0 else (text[start + 1 : end - 1], end)


def read_option(text: str, position: int) -> tuple[str, int] | None:
    """Return what is in the square brackets that come next; None if there are none."""
    start = skip_space(text, position)
    if not text.startswith("[", start):
        return None
    depth = 0
    for found in re.compile(r"\\.|[][{}]", re.DOTALL).finditer(text, start, start + _MOST_DELIMITED):
        mark = found.group()
        depth += (mark == "{") - (mark == "}")
        if mark == "]" and not depth:
            return text[start + 1 : found.start()], found.end()
    return None


def read_argument(text: str, position: int) -> tuple[str, int] | None:
    """Return the next argument as TeX takes it: a group, a command, or one character; None at the end."""
    start = skip_space(text, position)
    if start >= len(text) or text[start] == "}":
        return None
    if text[start] == "{":
        return read_group(text, start)
    name = _NAME.match(text, start)
    if name is None:
        return text[start], start + 1
    return None if name.group() in _NO_ARGUMENTS else (name.group(), name.end())


# Definitions


def read_newcommand(text: str, position: int) -> Definition | None:
    r"""Read what follows `\newcommand`: a name, the number of arguments, a default, and the body."""
    if text.startswith("*", position):
        position += 1
    named = read_argument(text, position)
    if named is None or not _NAME.fullmatch(named[0].strip()):
        return None
    name, position = named[0].strip()[1:], named[1]
    number, default = 0, None
    counted = read_option(text, position)
    if counted is not None:
        if not counted[0].strip().isdecimal() or int(counted[0]) > _MOST_PARAMETERS:
            return None
        number, position = int(counted[0]), counted[1]
        given = read_option(text, position)
        if given is not None:
            default, position = given
    body = read_argument(text, position)
    return None if body is None else Definition(name, Macro(body[0], number, default), body[1])


def read_def(text: str, position: int) -> Definition | None:
    r"""Read what follows `\def`: a name, parameters with texts between them, and the body."""
    start = skip_space(text, position)
    name = _NAME.match(text, start)
    if name is None:
        return None
    brace = text.find("{", name.end(), name.end() + _MOST_DELIMITED)
    if brace < 0:
        return None
    parameters = text[name.end() : brace].strip()
    pieces = _PARAMETER.split(parameters)
    numbers, texts = pieces[1::2], tuple(piece.strip() for piece in pieces[0::2])
    end = -1 if "\\begin" in parameters else group_end(text, brace)
    if end < 0 or numbers != [str(k + 1) for k in range(len(numbers))] or "#" in "".join(texts):
        return None
    macro = Macro(text[brace + 1 : end - 1], len(numbers), pieces=texts if any(texts) else ())
    return Definition(name.group()[1:], macro, end)


def read_let(text: str, position: int) -> Definition | None:
    r"""Read what follows `\let`: a name, an equals sign if there is one, and what it now means."""
    start = skip_space(text, position)
    name = _NAME.match(text, start)
    if name is None:
        return None
    start = skip_space(text, name.end())
    if text.startswith("=", start):
        start = skip_space(text, start + 1)
    meaning = _NAME.match(text, start)
    if meaning is None:
        return None
    return Definition(name.group()[1:], Macro(meaning.group()), meaning.end())


def read_operator(text: str, position: int) -> Definition | None:
    r"""Read what follows `\DeclareMathOperator`: a name and how it is written."""
    star = "*" if text.startswith("*", position) else ""
    named = read_argument(text, position + len(star))
    shown = None if named is None else read_argument(text, named[1])
    if named is None or shown is None or not _NAME.fullmatch(named[0].strip()):
        return None
    return Definition(named[0].strip()[1:], Macro(f"\\operatorname{star}{{{shown[0]}}}"), shown[1])


DEFINITIONS = {
    "newcommand": read_newcommand,
    "renewcommand": read_newcommand,
    "providecommand": read_newcommand,
    "DeclareRobustCommand": read_newcommand,
    "def": read_def,
    "edef": read_def,
    "gdef": read_def,
    "xdef": read_def,
    "let": read_let,
    "DeclareMathOperator": read_operator,
}


# Calls


def read_arguments(macro: Macro, text: str, position: int) -> tuple[list[str], int] | None:
    """Return the arguments of a call whose name ends at `position`, and where it ends; None if some are missing."""
    if macro.pieces:
        return _read_delimited(macro.pieces, text, position)
    arguments: list[str] = []
    if macro.default is not None and macro.num_arguments:
        given = read_option(text, position)
        argument, position = given if given is not None else (macro.default, position)
        arguments.append(argument)
    while len(arguments) < macro.num_arguments:
        found = read_argument(text, position)
        if found is None:
            return None
        arguments.append(found[0])
        position = found[1]
    return arguments, position


def _read_delimited(pieces: tuple[str, ...], text: str, position: int) -> tuple[list[str], int] | None:
    """Arguments between texts: each ends where the next text begins, outside of groups."""
    position = skip_space(text, position)
    if not text.startswith(pieces[0], position):
        return None
    position += len(pieces[0])
    arguments = []
    for piece in pieces[1:]:
        found = _up_to(piece, text, position) if piece else read_argument(text, position)
        if found is None:
            return None
        arguments.append(found[0].strip())
        position = found[1]
    return arguments, position


def _up_to(piece: str, text: str, start: int) -> tuple[str, int] | None:
    depth, position = 0, start
    while position < min(len(text), start + _MOST_DELIMITED):
        if not depth and text.startswith(piece, position):
            return text[start:position], position + len(piece)
        depth += (text[position] == "{") - (text[position] == "}")
        position += 2 if text[position] == "\\" else 1
    return None


def fill_in(macro: Macro, arguments: list[str]) -> str:
    """Return what a call with these arguments becomes."""
    if not arguments:
        return macro.body
    parts = _PARAMETER.split(macro.body)
    made = parts[0]
    for number, behind in zip(parts[1::2], parts[2::2], strict=True):
        index = int(number) - 1
        made = joined(made, arguments[index] if index < len(arguments) else "")
        made = joined(made, behind)
    return made


def joined(before: str, behind: str) -> str:
    r"""Return two texts as one, with a space where the name of a command would run into what follows it.

    >>> joined(r"\alpha", "x")
    '\\alpha x'
    """
    if behind[:1].isalpha() and _ENDS_IN_NAME.search(before[-80:]):
        return f"{before} {behind}"
    return before + behind
