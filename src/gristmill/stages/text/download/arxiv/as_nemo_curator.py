r"""The text NeMo Curator 1.4 makes of a paper, for users who need the same (`compat=True`).

Each file is cut before its first section and from its bibliography or appendix on, stripped of comments, and its macros
without arguments are replaced; then files are joined in the order of the archive. What this costs is known and kept: a
file without a section is empty, `\paragraph` counts as a section only where `\subparagraph` follows it at once, and a
comment takes the character before its `%` with it.
"""

import re
from functools import partial

_TITLED = r"\b\*?(?:\[(.*?)\])?\{(.*?)\}"
_SECTIONS = [rf"\\\b{name}{_TITLED}" for name in ("chapter", "part", "section", "subsection", "subsubsection")]
_SECTIONS.append(rf"\\\bparagraph{_TITLED}\\\bsubparagraph{_TITLED}")
_FIRST_SECTION = re.compile(f"^(.*?)({'|'.join(_SECTIONS)})", re.DOTALL)
_COMMENT_LINE = re.compile(r"^%.*\n?", re.MULTILINE)
_COMMENT = re.compile(r"[^\\]%.+$", re.MULTILINE)
_BEHIND = re.compile(
    r"(?:\\appendix|\\begin\{(?:references|REFERENCES|thebibliography)\}|\\bibliography\{.*\}).*$", re.DOTALL
)
_DEFINITIONS = (
    re.compile(r"\\\bnewcommand\b\*?\{(\\[a-zA-Z0-9]+?)\}\{(.*?)\}$", re.MULTILINE),
    re.compile(r"\\def\s*(\\[a-zA-Z0-9]+?)\s*\{(.*?)\}$", re.MULTILINE),
)


def as_nemo_curator(files: list[str]) -> str | None:
    """Return the text of a paper, or None where NeMo Curator has none.

    It has none without a section, nor where a macro stands for letters that are not ASCII: its replacing fails then.
    """
    macros = {}
    for text in files:
        for pattern in _DEFINITIONS:
            macros.update({found[1]: found[2] for found in pattern.finditer(text)})
    if not all(value.isascii() for value in macros.values()) and any(map(_FIRST_SECTION.search, files)):
        return None
    made = "\n".join(_cleaned(text, macros) for text in files)
    return made or None


def _cleaned(text: str, macros: dict[str, str]) -> str:
    begun = _FIRST_SECTION.search(text)
    if begun is None:
        return ""
    text = text[begun.start(2) :]
    text = _COMMENT.sub("", _COMMENT_LINE.sub("", text))
    text = _BEHIND.sub("", text)
    for name, value in macros.items():
        text = re.sub(f"{re.escape(name)}([^a-zA-Z0-9])", partial(_in_place, value), text)
    return text


def _in_place(value: str, found: re.Match[str]) -> str:
    return value + found[1]
