r"""`assemble`: the files of a paper as one text of LaTeX, in the order TeX reads them.

`\input` is replaced by what is in the file, macros by what they stand for, comments by nothing. What precedes
`\begin{document}` is read for its definitions and for the title, and is not part of the text; nor is the bibliography.
What is verbatim stays so. Limits bound every loop: where one is reached, replacing stops and the text is kept.
"""

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.arxiv import tex_macros as macros
from gristmill.stages.text.download.arxiv.tex_macros import Macro
from gristmill.stages.text.download.arxiv.tex_project import TexProject

_NEXT = re.compile(r"\\(?:[a-zA-Z@]+|.)|%", re.DOTALL)
_CONDITION = re.compile(r"\\(if(?!f(?![a-zA-Z]))[a-zA-Z@]*|fi)(?![a-zA-Z@])")
_PLAIN_NAME = re.compile(r"\s*([^\s{}\\%]+)")
_ENVIRONMENT = re.compile(r"\s*\{([^{}]*)\}")
_MANY_NEWLINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_TRAILING = re.compile(r"[ \t]+\n")
_SPACES = re.compile(r"\s+")
_LINE_BREAK = re.compile(r"\\\\(?:\[[^]]*\])?")

_VERBATIM = {"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "alltt", "filecontents", "filecontents*"}
_LEFT_OUT = {"thebibliography", "references", "REFERENCES", "comment", "filecontents", "filecontents*"}
_FRONT_MATTER = {
    "author", "authors", "affiliation", "affil", "affiliations", "altaffiliation", "address", "email", "ead",
    "institute", "institution", "date", "thanks", "homepage", "orcid", "corref", "cortext", "fntext", "tnotetext",
}  # fmt: skip
_DROPPED = {"maketitle", "bibliographystyle", "bibliography", "printbibliography", "nocite", "tableofcontents"}
_WITH_GROUP = {"bibliographystyle", "bibliography", "nocite"}
_MOST_CLEANING = 3  # titles in titles
_RAW_GROUP = {"url", "path", "href", "nolinkurl"}


class _Verbatim(str):
    """A piece of the result whose white space is left alone."""

    __slots__ = ()


@dataclass
class Paper:
    """A paper: `limits` names those that were reached, where replacing stopped."""

    title: str = ""
    abstract: str = ""
    text: str = ""
    limits: list[str] = field(default_factory=list)


@dataclass
class _Frame:
    """Text that is being read: a file, or what a macro has become."""

    text: str
    position: int = 0
    file: str | None = None
    macro: str | None = None
    is_subfile: bool = False


def assemble(project: TexProject, limits: IngestLimits | None = None) -> Paper | None:
    """Return the paper that these files make up, or None if none of them is TeX."""
    roots = project.roots()
    if not roots:
        return None
    try:
        made = [_Assembly(project, limits or IngestLimits()).run(root) for root in roots]
    finally:
        macros.forget_texts()
    paper = made[0]
    paper.text = "\n\n".join(each.text for each in made if each.text)
    paper.limits = sorted({name for each in made for name in each.limits})
    return paper


class _Assembly:
    """One paper on its way from the root file to a text."""

    def __init__(self, project: TexProject, limits: IngestLimits) -> None:
        self._project = project
        self._limits = limits
        self._macros: dict[str, Macro] = {}
        self._frames: list[_Frame] = []
        self._out: list[str] = []
        self._paper = Paper()
        self._abstract_at: int | None = None
        self._expansions = 0
        self._grown = 0
        self._room = 0
        self._reached: set[str] = set()
        self._in_document = False
        self._cleaning = 0
        self._never_ends = False

    def run(self, root: str) -> Paper:
        text = self._project.texts[root]
        self._room = int(self._limits.max_growth * sum(map(len, self._project.texts.values()))) + 1000
        self._read(_Frame(text, file=root))
        self._paper.text = _tidy(self._out)
        if self._paper.title and self._in_document:
            self._paper.text = f"\\title{{{self._paper.title}}}\n\n{self._paper.text}".rstrip()
        self._paper.limits = sorted(self._reached)
        return self._paper

    def _read(self, frame: _Frame) -> None:
        self._frames = [frame]
        while self._frames:
            frame = self._frames[-1]
            found = _NEXT.search(frame.text, frame.position)
            if found is None:
                self._out.append(frame.text[frame.position :])
                self._frames.pop()
                continue
            self._out.append(frame.text[frame.position : found.start()])
            frame.position = found.end()
            if found.group() == "%":
                self._comment(frame)
            else:
                self._command(frame, found.group()[1:])

    # Comments

    def _comment(self, frame: _Frame) -> None:
        """Pass over a comment, its line end and the white space before the next line, as TeX does."""
        text = frame.text
        end = text.find("\n", frame.position)
        if end < 0:
            frame.position = len(text)
            return
        following = end + 1
        while following < len(text) and text[following] in " \t":
            following += 1
        is_paragraph = text.startswith("\n", following)
        frame.position = end if is_paragraph and not self._at_line_start() else following

    def _at_line_start(self) -> bool:
        before = next((piece for piece in reversed(self._out) if piece), "\n")
        return before.rstrip(" \t").endswith("\n")

    # Commands

    def _command(self, frame: _Frame, name: str) -> None:
        handler = _HANDLERS.get(name)
        macro = self._macros.get(name)
        if macro is not None and not macro.is_program and self._expand(frame, name, macro):
            return
        if handler is not None and handler(self, frame, name):
            return
        self._out.append(f"\\{name}")

    def _expand(self, frame: _Frame, name: str, macro: Macro) -> bool:
        if any(each.macro == name for each in self._frames) or len(self._frames) > self._limits.max_template_depth:
            return False
        if self._expansions >= self._limits.max_expansions:
            self._reached.add("max_expansions")
            return False
        self._expansions += 1
        while macro.num_arguments and frame.macro and macros.skip_space(frame.text, frame.position) >= len(frame.text):
            self._frames.pop()  # the last word of another macro: its arguments follow that one
            frame = self._frames[-1]
        found = macros.read_arguments(macro, frame.text, frame.position)
        if found is None:
            return False
        arguments, end = found
        made = macros.fill_in(macro, arguments)
        if self._grown + len(made) > self._room:
            self._reached.add("max_growth")
            return False
        self._grown += len(made)
        frame.position = end
        made = self._joined_behind(frame, made)
        self._frames.append(_Frame(made, macro=name))
        return True

    def _joined_behind(self, frame: _Frame, made: str) -> str:
        r"""What a macro became, set off from what follows: `\xspace` is a space or nothing, empty braces nothing."""
        behind = frame.text[frame.position : frame.position + 2]
        if made.endswith("\\xspace"):
            made = made.removesuffix("\\xspace")
            if behind == "{}":
                frame.position += 2
            return made
        needs_apart = macros.joined(made, "x") != made + "x"
        if behind == "{}" and not needs_apart:
            frame.position += 2
        return made + " " if needs_apart and behind[:1].isalpha() else made

    # Handlers: each returns whether it has dealt with the command

    def _define(self, frame: _Frame, name: str) -> bool:
        found = macros.DEFINITIONS[name](frame.text, frame.position)
        if found is None:
            return not self._in_document
        frame.position = found.end
        if name == "providecommand" and found.name in self._macros:
            return True
        known = self._macros.get(found.macro.body[1:]) if name == "let" else None
        self._macros[found.name] = known or found.macro
        return True

    def _input(self, frame: _Frame, name: str) -> bool:
        text = frame.text
        if name in ("import", "subimport"):
            directory = macros.read_group(text, frame.position)
            file = None if directory is None else macros.read_group(text, directory[1])
            if directory is None or file is None:
                return False
            wanted, end = posixpath.join(directory[0].strip(), file[0].strip()), file[1]
        else:
            found = macros.read_group(text, frame.position)
            plain = _PLAIN_NAME.match(text, frame.position)
            if found is None and plain is not None:
                found = plain[1], plain.end()
            if found is None:
                return False
            wanted, end = found
        frame.position = end
        self._open(wanted, is_subfile=name == "subfile")
        return True

    def _open(self, wanted: str, *, is_subfile: bool) -> None:
        files = [each.file for each in self._frames if each.file is not None]
        directories = dict.fromkeys([posixpath.dirname(files[0]), posixpath.dirname(files[-1]), ""])
        found = self._project.find(wanted, list(directories))
        if found is None or found in files:
            return
        if len(files) >= self._limits.max_input_depth:
            self._reached.add("max_input_depth")
            return
        text = self._project.texts[found]
        if self._grown + len(text) > self._room:
            self._reached.add("max_growth")
            return
        self._grown += len(text)
        self._frames.append(_Frame(text, file=found, is_subfile=is_subfile))

    def _package(self, frame: _Frame, name: str) -> bool:
        """Read the definitions of a package that comes with the paper."""
        option = macros.read_option(frame.text, frame.position)
        position = frame.position if option is None else option[1]
        group = macros.read_group(frame.text, position)
        if group is None:
            return False
        frame.position = group[1]
        for package in group[0].split(","):
            self._read_definitions(self._project.style(package.strip()))
        return True

    def _read_definitions(self, text: str) -> None:
        for found in _NEXT.finditer(text):
            reader = macros.DEFINITIONS.get(found.group()[1:])
            defined = reader(text, found.end()) if reader is not None else None
            if defined is not None:
                self._macros[defined.name] = defined.macro

    def _begin(self, frame: _Frame, name: str) -> bool:
        found = _ENVIRONMENT.match(frame.text, frame.position)
        if found is None:
            return False
        kind = found[1].strip()
        if kind == "document":
            frame.position = found.end()
            if not self._in_document:
                self._out.clear()
                self._in_document = True
            return True
        if kind in _LEFT_OUT:
            frame.position = self._behind_end(frame.text, kind, found.end())
            return True
        if kind in _VERBATIM:
            end = self._behind_end(frame.text, kind, found.end())
            self._out.append(_Verbatim(f"\\begin{frame.text[frame.position : end].lstrip()}"))
            frame.position = end
            return True
        if kind == "abstract":
            self._out.append(f"\\begin{{{kind}}}")
            self._abstract_at = len(self._out)
            frame.position = found.end()
            return True
        return False

    def _behind_end(self, text: str, kind: str, position: int) -> int:
        closing = f"\\end{{{kind}}}"
        found = text.find(closing, position)
        return len(text) if found < 0 else found + len(closing)

    def _end(self, frame: _Frame, name: str) -> bool:
        found = _ENVIRONMENT.match(frame.text, frame.position)
        kind = "" if found is None else found[1].strip()
        if kind == "abstract" and self._abstract_at is not None:
            self._paper.abstract = self._paper.abstract or _tidy(self._out[self._abstract_at :])
            self._abstract_at = None
        if kind == "document" or (found is None and name == "bye"):
            while self._frames and self._frames[-1].file is None:
                self._frames.pop()
            if self._frames and not self._frames[-1].is_subfile:
                self._frames.clear()
            elif self._frames:
                self._frames.pop()
            return True
        return False

    def _end_of_file(self, frame: _Frame, name: str) -> bool:
        while self._frames and self._frames[-1].file is None:
            self._frames.pop()
        if self._frames:
            self._frames.pop()
        return True

    def _class(self, frame: _Frame, name: str) -> bool:
        """The beginning of a file that could stand alone: if it is read within another, only its document counts."""
        if len([each for each in self._frames if each.file is not None]) > 1:
            begin = frame.text.find("\\begin{document}", frame.position)
            frame.position = len(frame.text) if begin < 0 else begin + len("\\begin{document}")
            frame.is_subfile = True
        return True

    def _verb(self, frame: _Frame, name: str) -> bool:
        start = frame.position + frame.text.startswith("*", frame.position)
        if start >= len(frame.text) or frame.text[start].isspace():
            return False
        end = frame.text.find(frame.text[start], start + 1)
        if end < 0 or "\n" in frame.text[start:end]:
            return False
        self._out.append(_Verbatim(f"\\{name}{frame.text[frame.position : end + 1]}"))
        frame.position = end + 1
        return True

    def _raw_group(self, frame: _Frame, name: str) -> bool:
        r"""Keep the address in `\url{a%20b}` as it is: no comment begins in it."""
        start = macros.skip_space(frame.text, frame.position)
        end = frame.text.find("}", start)
        if not frame.text.startswith("{", start) or end < 0:
            return False
        self._out.append(_Verbatim(f"\\{name}{frame.text[start : end + 1]}"))
        frame.position = end + 1
        return True

    def _title(self, frame: _Frame, name: str) -> bool:
        option = macros.read_option(frame.text, frame.position)
        group = macros.read_group(frame.text, frame.position if option is None else option[1])
        if group is None:
            return False
        frame.position = group[1]
        title = _LINE_BREAK.sub(" ", self._cleaned(group[0]))
        self._paper.title = self._paper.title or _SPACES.sub(" ", title).strip()
        return True

    def _abstract(self, frame: _Frame, name: str) -> bool:
        group = macros.read_group(frame.text, frame.position)
        if group is None:
            return False
        frame.position = group[1]
        abstract = self._cleaned(group[0]).strip()
        self._paper.abstract = self._paper.abstract or abstract
        if self._in_document:
            self._out.append(f"\\begin{{abstract}}\n{abstract}\n\\end{{abstract}}")
        return True

    def _cleaned(self, text: str) -> str:
        """A piece of text as it would be in the result."""
        if self._cleaning > _MOST_CLEANING:
            return text
        saved = self._frames, self._out
        self._out = []
        self._cleaning += 1
        self._read(_Frame(text, macro=""))
        self._cleaning -= 1
        made = _tidy(self._out)
        self._frames, self._out = saved
        return made

    def _drop(self, frame: _Frame, name: str) -> bool:
        if name in _WITH_GROUP or name in _FRONT_MATTER:
            option = macros.read_option(frame.text, frame.position)
            group = macros.read_group(frame.text, frame.position if option is None else option[1])
            if group is None:
                return name in _WITH_GROUP and not self._in_document
            frame.position = group[1]
        return True

    def _if_false(self, frame: _Frame, name: str) -> bool:
        if self._never_ends:
            return False
        depth = 1
        for found in _CONDITION.finditer(frame.text, frame.position):
            depth += -1 if found[1] == "fi" else 1
            if not depth:
                frame.position = found.end()
                return True
        self._never_ends = True  # nor does any that follows: they are not looked for again
        return False


_Handler = Callable[[_Assembly, _Frame, str], bool]
_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(macros.DEFINITIONS, _Assembly._define),
    **dict.fromkeys(("input", "include", "subfile", "import", "subimport"), _Assembly._input),
    **dict.fromkeys(("usepackage", "RequirePackage"), _Assembly._package),
    **dict.fromkeys(("documentclass", "documentstyle"), _Assembly._class),
    **dict.fromkeys(_RAW_GROUP, _Assembly._raw_group),
    **dict.fromkeys(_DROPPED | _FRONT_MATTER, _Assembly._drop),
    "begin": _Assembly._begin,
    "end": _Assembly._end,
    "bye": _Assembly._end,
    "endinput": _Assembly._end_of_file,
    "verb": _Assembly._verb,
    "lstinline": _Assembly._verb,
    "title": _Assembly._title,
    "abstract": _Assembly._abstract,
    "iffalse": _Assembly._if_false,
}


def _tidy(pieces: list[str]) -> str:
    """One text, without trailing spaces and without more than one blank line, except in what is verbatim."""
    made: list[str] = []
    plain: list[str] = []

    def close() -> None:
        text = _TRAILING.sub("\n", "".join(plain))
        made.append(_MANY_NEWLINES.sub("\n\n", text))
        plain.clear()

    for piece in pieces:
        if isinstance(piece, _Verbatim):
            close()
            made.append(piece)
        else:
            plain.append(piece)
    close()
    return "".join(made).strip()
