r"""MathML to LaTeX, by a table of our own: what is written, not how it looks.

    <msup><mi>x</mi><mn>2</mn></msup>      x^{2}
    <mfrac><mn>1</mn><mi>n</mi></mfrac>    \frac{1}{n}

An unknown element becomes what its parts are, so nothing a reader would see is lost.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

from gristmill.stages.text.html.mathml_tables import (
    ACCENTS,
    COMMANDS,
    FUNCTIONS,
    TAKES_LIMITS,
    UNDER_ACCENTS,
    UNICODE_STYLES,
    VARIANTS,
)

if TYPE_CHECKING:
    from resiliparse.parse.html import DOMNode

MAX_DEPTH = 100  # of nested elements: below it their text is taken as it is

_SPACES = re.compile(r"\s+")
_ENDS_WITH_COMMAND = re.compile(r"\\[A-Za-z]+$")
_LEFT_OUT = ("annotation", "annotation-xml", "mphantom", "none", "mprescripts", "malignmark", "maligngroup")


def mathml_to_latex(math: "DOMNode") -> str:
    """Return the formula of a `math` element, without dollar signs around it."""
    return _children(math, 0).strip()


def _convert(node: "DOMNode", depth: int) -> str:
    tag = (node.tag or "").rpartition(":")[2]
    if tag == "#text":
        return _symbols(node.value or "")
    if tag.startswith("#") or tag in _LEFT_OUT:
        return ""
    if depth > MAX_DEPTH:
        return _symbols(node.text or "")
    return _RULES.get(tag, _children)(node, depth + 1)


def _children(node: "DOMNode", depth: int) -> str:
    return _joined([_convert(child, depth) for child in node.child_nodes])


def _parts(node: "DOMNode", depth: int, least: int) -> list[str]:
    """The element children, converted; empty ones where some are missing."""
    elements = [child for child in node.child_nodes if not (child.tag or "#").startswith("#")]
    made = [_convert(child, depth) for child in elements]
    return made + [""] * (least - len(made))


def _joined(pieces: list[str]) -> str:
    r"""Put pieces together: a command and a letter after it need a space between them."""
    text = ""
    for piece in pieces:
        if piece and piece[0].isalpha() and _ENDS_WITH_COMMAND.search(text[-24:]):
            text += " "
        text += piece
    return text


def _symbols(text: str) -> str:
    """Characters as LaTeX has them."""
    return _joined([_symbol(char) for char in _SPACES.sub(" ", text).strip()])


def _symbol(char: str) -> str:
    if char in COMMANDS:
        return COMMANDS[char]
    if char.isascii():
        return char
    if 0x1D400 <= ord(char) <= 0x1D7FF or 0x2100 <= ord(char) <= 0x214F:
        return _styled_letter(char)
    return char


def _styled_letter(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char)
    name = unicodedata.name(char, "")
    style = next((command for word, command in UNICODE_STYLES if word in name), "")
    inner = COMMANDS.get(plain, plain)
    return f"{style}{{{inner}}}" if style else inner


def _identifier(node: "DOMNode", depth: int) -> str:
    del depth
    text = _SPACES.sub(" ", node.text or "").strip()
    if text in FUNCTIONS:
        return f"\\{text}"
    variant = VARIANTS.get(node.getattr("mathvariant") or "", "")
    made = _symbols(text)
    if variant:
        return f"{variant}{{{made}}}"
    plain = len(text) > 1 and text.isascii() and text.isalpha()
    return f"\\mathrm{{{made}}}" if plain else made


def _text(node: "DOMNode", depth: int) -> str:
    del depth
    text = _SPACES.sub(" ", node.text or "")
    if not text.strip("\xa0 "):
        return r"\ " if text else ""
    escaped = re.sub(r"([%#&_${}])", r"\\\1", text.replace("\xa0", " "))
    return f"\\text{{{escaped}}}"


def _operator(node: "DOMNode", depth: int) -> str:
    del depth
    text = _SPACES.sub(" ", node.text or "").strip()
    if text in FUNCTIONS:
        return f"\\{text}"
    if len(text) > 1 and text.isascii() and text.isalpha():
        return f"\\operatorname{{{text}}}"
    return _symbols(text)


def _braced(made: str) -> str:
    return f"{{{made}}}"


def _base(made: str) -> str:
    """What a script is put on: in braces, unless it is one character or one command."""
    return made if len(made) == 1 or re.fullmatch(r"\\[A-Za-z]+(?:\{[^{}]*\})?", made) else _braced(made)


def _fraction(node: "DOMNode", depth: int) -> str:
    above, below = _parts(node, depth, 2)[:2]
    return f"\\frac{{{above}}}{{{below}}}" if node.getattr("linethickness") != "0" else f"\\binom{{{above}}}{{{below}}}"


def _root(node: "DOMNode", depth: int) -> str:
    of, degree = _parts(node, depth, 2)[:2]
    return f"\\sqrt[{degree}]{{{of}}}"


def _scripts(node: "DOMNode", depth: int) -> str:
    kinds = {"msub": "_", "msup": "^", "msubsup": "_^"}
    base, *scripts = _parts(node, depth, 3)
    marks = kinds[(node.tag or "").rpartition(":")[2]]
    scripted = "".join(_script(mark, made) for mark, made in zip(marks, scripts, strict=False))
    return (_base(base) if base else "{}") + scripted


def _script(mark: str, made: str) -> str:
    if not made:
        return ""
    return made if mark == "^" and set(made) == {"'"} else f"{mark}{{{made}}}"


def _under_over(node: "DOMNode", depth: int) -> str:
    kind = (node.tag or "").rpartition(":")[2]
    base, *rest = _parts(node, depth, 3)
    under, over = {"munder": (rest[0], ""), "mover": ("", rest[0]), "munderover": (rest[0], rest[1])}[kind]
    if base in TAKES_LIMITS:
        return base + _script("_", under) + _script("^", over)
    return _under(_over(base, over, _raw(node, -1)), under, _raw(node, 1))


def _raw(node: "DOMNode", place: int) -> str:
    """The characters of one of the element children."""
    elements = [child for child in node.child_nodes if not (child.tag or "#").startswith("#")]
    return (elements[place].text or "").strip() if len(elements) > abs(place) else ""


def _over(base: str, over: str, raw: str) -> str:
    if not over:
        return base
    if raw in ACCENTS:
        narrow, wide = ACCENTS[raw]
        return f"{narrow if len(base) == 1 or base.startswith(chr(92)) else wide}{{{base}}}"
    return f"\\overset{{{over}}}{{{base}}}"


def _under(base: str, under: str, raw: str) -> str:
    if not under:
        return base
    if raw in UNDER_ACCENTS:
        return f"{UNDER_ACCENTS[raw]}{{{base}}}"
    return f"\\underset{{{under}}}{{{base}}}"


def _multiscripts(node: "DOMNode", depth: int) -> str:
    elements = [child for child in node.child_nodes if not (child.tag or "#").startswith("#")]
    if not elements:
        return ""
    sides: tuple[list[str], list[str]] = ([], [])
    side = 0
    for child in elements[1:]:
        if (child.tag or "").endswith("mprescripts"):
            side = 1
        else:
            sides[side].append(_convert(child, depth))
    behind, before = ("".join(_script("_^"[k % 2], made) for k, made in enumerate(scripts)) for scripts in sides)
    return ("{}" + before if before else "") + _base(_convert(elements[0], depth)) + behind


def _table(node: "DOMNode", depth: int) -> str:
    rows = [child for child in node.child_nodes if (child.tag or "").rpartition(":")[2] in ("mtr", "mlabeledtr")]
    lines = [" & ".join(_cells(row, depth)) for row in rows]
    return r"\begin{matrix}" + r" \\ ".join(lines) + r"\end{matrix}"


def _cells(row: "DOMNode", depth: int) -> list[str]:
    cells = [child for child in row.child_nodes if (child.tag or "").rpartition(":")[2] == "mtd"]
    labelled = (row.tag or "").endswith("mlabeledtr")
    return [_children(cell, depth) for cell in (cells[1:] if labelled else cells)]


def _fenced(node: "DOMNode", depth: int) -> str:
    left, right = node.getattr("open"), node.getattr("close")
    separators = _SPACES.sub("", "," if node.getattr("separators") is None else node.getattr("separators"))
    parts = _parts(node, depth, 0)
    made = parts[0] if parts else ""
    for place, piece in enumerate(parts[1:]):
        mark = separators[min(place, len(separators) - 1)] if separators else ""
        made = _joined([made, _symbols(mark), piece])
    return _joined([_symbols("(" if left is None else left), made, _symbols(")" if right is None else right)])


def _enclosed(node: "DOMNode", depth: int) -> str:
    notation = node.getattr("notation") or "longdiv"
    made = _children(node, depth)
    commands = {
        "radical": r"\sqrt",
        "box": r"\boxed",
        "roundedbox": r"\boxed",
        "top": r"\overline",
        "bottom": r"\underline",
    }
    command = next((commands[word] for word in notation.split() if word in commands), None)
    return f"{command}{{{made}}}" if command else made


def _space(node: "DOMNode", depth: int) -> str:
    del depth
    width = node.getattr("width") or ""
    number = re.match(r"([\d.]+)em", width)
    if node.getattr("linebreak") == "newline":
        return r"\\ "
    return r"\quad " if number and float(number[1].strip(".") or 0) >= 1 else r"\ " if number else ""


def _string(node: "DOMNode", depth: int) -> str:
    return f"\\text{{“{_text(node, depth).removeprefix(chr(92) + 'text{').removesuffix('}')}”}}"


def _first(node: "DOMNode", depth: int) -> str:
    return _parts(node, depth, 1)[0]


_RULES: dict[str, Callable[["DOMNode", int], str]] = {
    "mi": _identifier,
    "mo": _operator,
    "mtext": _text,
    "ms": _string,
    "mspace": _space,
    "mfrac": _fraction,
    "msqrt": lambda node, depth: f"\\sqrt{{{_children(node, depth)}}}",
    "mroot": _root,
    "msub": _scripts,
    "msup": _scripts,
    "msubsup": _scripts,
    "munder": _under_over,
    "mover": _under_over,
    "munderover": _under_over,
    "mmultiscripts": _multiscripts,
    "mtable": _table,
    "mfenced": _fenced,
    "menclose": _enclosed,
    "semantics": _first,
    "maction": _first,
}
