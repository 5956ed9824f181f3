r"""Formulas in a page: found in every form that the web has them in, and each represented by one word.

| form                                          | who writes it                          |
|-----------------------------------------------|----------------------------------------|
| `<script type="math/tex">`                    | MathJax 2                              |
| `<annotation encoding="application/x-tex">`   | KaTeX, MediaWiki, Pandoc               |
| `<math alttext="…">`                          | LaTeXML, ar5iv                         |
| `data-mathml`, `mjx-assistive-mml`            | MathJax 2 and 3 when they have rendered|
| `data-tex`, `data-latex`                      | Zhihu, MathJax 4 and others            |
| images with `alt`, or with TeX in their `src` | MediaWiki, WordPress, CodeCogs, Google |
| `<math>` without any TeX                      | converted by `mathml.py`               |

What pages have in their text (`\(…\)`, `\[…\]`, `$$…$$`, `\begin{…}`, `[tex]`) comes back as it is. Rendered twins of
a formula (`.katex-html`, `.MathJax_Preview`) are removed, so that each comes out once.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from gristmill.stages.text.html.mathml import mathml_to_latex
from gristmill.stages.text.html.placeholders import Placeholders, is_attached

if TYPE_CHECKING:
    from resiliparse.parse.html import DOMNode, HTMLTree

# Whatever holds a formula with its twins, the outermost first.
_CONTAINERS = (
    ".katex-display",
    ".MathJax_Display, .MathJax_SVG_Display, .MJXc-display",
    ".katex, .mwe-math-element, mjx-container, .MathJax, .MathJax_SVG, .MathJax_CHTML, .mjx-chtml",
)
_SINGLE = ", ".join(
    [
        'script[type^="math/"]',
        "d-math, math, [data-tex], [data-latex]",
        "span.math.inline, span.math.display, div.math.display",
    ]
)
_IMAGES = (
    "img.tex, img.latex, img[class*='mwe-math-fallback-image'], img.math, img[eeimg], img[class*='ql-img'], "
    "img[src*='latex'], img[src*='cht=tx']"
)
_TWINS = ".MathJax_Preview, .katex-html, mjx-assistive-mml, .MJX_Assistive_MathML"
_NOT_TEXT = {"script", "style", "textarea", "title", "noscript", "template", "pre", "code", "samp"}
_BOXES = {"body", "div", "td", "li", "section", "article", "main", "center", "blockquote", "figure", "dd"}

_WRITTEN_SOURCE = (
    'annotation[encoding*="tex"], annotation[encoding*="TeX"], annotation[encoding*="LaTeX"], script[type^="math/tex"]'
)

_SOURCES = re.compile(
    r"latex\.php\?(?:.*?&)?latex=(?P<wordpress>[^&]*)"
    r"|cht=tx(?:.*?)&chl=(?P<google>[^&]*)|chl=(?P<google_first>[^&]*)&cht=tx"
    r"|codecogs\.com/(?:[a-z]+\.(?:latex|image)|eqnedit\.php)\?(?P<codecogs>.*)|/(?:mimetex|mathtex)\.cgi\?(?P<cgi>.*)",
)
_DISPLAY_STYLE = re.compile(r"^\{\\displaystyle\s*(.*)\}$", re.DOTALL)
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_ENVIRONMENT = re.compile(r"^\\begin\{(?:align|equation|gather|multline|eqnarray|displaymath)")
_OPENING = re.compile(
    r"\\\(|\\\[|\$\$|\[(tex|math|latex)\]"
    r"|\\begin\{((?:align|equation|gather|multline|eqnarray|displaymath|math|array|[bpvV]?matrix|cases)\*?)\}"
)
_CLOSING = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
MAX_TEX_CHARS = 5_000  # of a formula between delimiters: what is longer is not one
_LOOKS_LIKE_TEX = re.compile(r"[\\^_={}]|^[A-Za-z0-9]$")


def mark_formulas(tree: "HTMLTree", placeholders: Placeholders, *, written_out: bool = True) -> int:
    """Replace each formula of a page by the word that stands for it; return how many there were.

    `written_out` is False where no text of the page has a delimiter in it: looking at all of them takes a millisecond.
    """
    document = tree.document
    marker = _Marker(tree, placeholders)
    for selector in _CONTAINERS:
        for node in document.query_selector_all(selector):
            marker.container(node)
    for node in document.query_selector_all(_SINGLE):
        marker.single(node)
    for node in document.query_selector_all(_IMAGES):
        marker.image(node)
    if marker.count:
        for node in document.query_selector_all(_TWINS):
            _remove(node)
    for node in _texts(tree) if written_out else ():
        marker.written_out(node)
    return marker.count


class _Marker:
    """Replaces formulas in one page."""

    def __init__(self, tree: "HTMLTree", placeholders: Placeholders) -> None:
        self._tree = tree
        self._placeholders = placeholders
        self.count = 0

    def container(self, node: "DOMNode") -> None:
        """A formula with its twins: the TeX is within, in an attribute, or in a script after it."""
        if not is_attached(node):
            return
        script = _script_behind(node)
        tex = (script.text or "") if script is not None else _tex_within(node)
        if not tex.strip():
            return
        display = _is_display(node) or (script is not None and _is_display(script))
        if script is not None:
            _remove(script)
        self._replace(node, tex, display=display)

    def single(self, node: "DOMNode") -> None:
        """A formula that stands alone."""
        if not is_attached(node):
            return
        tex = _tex_of(node)
        if tex.strip():
            self._replace(node, tex, display=_is_display(node))

    def image(self, node: "DOMNode") -> None:
        """A picture of a formula."""
        if not is_attached(node):
            return
        found = _SOURCES.search((node.getattr("src") or "")[:MAX_TEX_CHARS])
        alt = (node.getattr("alt") or "").strip()
        named = any(word in (node.class_name or "") for word in ("tex", "math", "ql-img")) or node.hasattr("eeimg")
        tex = unquote_plus(next(filter(None, found.groups()), "")) if found else ""
        if alt and (named or not tex) and _LOOKS_LIKE_TEX.search(alt):
            tex = alt
        if tex.strip():
            self._replace(node, tex, display=_is_display(node))

    def _replace(self, node: "DOMNode", tex: str, *, display: bool) -> None:
        cleaned, display = _cleaned(tex, display=display)
        if not cleaned or node.parent is None:
            return
        quotes = "$$" if display else "$"
        word = self._placeholders.keep(f"{quotes}{cleaned}{quotes}")
        text = self._tree.create_text_node(f" {word} " if display else word)
        if node.tag in ("div", "p") or _stands_alone(node):
            text = self._paragraph(text)
        node.parent.replace_child(text, node)
        self.count += 1

    def written_out(self, node: "DOMNode") -> None:
        """Formulas in a piece of text, with their delimiters: they come back as they are."""
        if node.parent is None or node.parent.tag in _NOT_TEXT or not is_attached(node):
            return
        text, marked, end = node.value or "", "", 0
        for start, stop in written_out(text):
            marked += text[end:start] + self._placeholders.keep(text[start:stop])
            end = stop
            self.count += 1
        if not marked:
            return
        marked += text[end:]
        made = self._tree.create_text_node(marked)
        if " " not in marked.strip() and _stands_alone(node):
            made = self._paragraph(made)
        node.parent.replace_child(made, node)

    def _paragraph(self, text: "DOMNode") -> "DOMNode":
        """Extractors do not take a few characters in a box for text; in a paragraph they do."""
        paragraph = self._tree.create_element("p")
        paragraph.append_child(text)
        return paragraph


def _cleaned(tex: str, *, display: bool) -> tuple[str, bool]:
    """TeX without what was around it, and whether that made it a formula on lines of its own."""
    tex = tex.strip()
    wrapped = _DISPLAY_STYLE.match(tex)
    if wrapped:
        tex = wrapped[1].strip()
    for first, last in _DELIMITERS:
        if tex.startswith(first) and tex.endswith(last) and len(tex) > len(first) + len(last):
            tex = tex[len(first) : -len(last)].strip()
            display = display or first in ("$$", "\\[")
            break
    display = display or _ENVIRONMENT.match(tex) is not None
    return " ".join(tex.split()), display


def _tex_of(node: "DOMNode") -> str:
    """The TeX of an element that is a formula."""
    if node.tag == "script":
        is_mathml = "mml" in (node.getattr("type") or "")
        return _from_markup(node.text or "") if is_mathml else (node.text or "")
    given = node.getattr("data-tex") or node.getattr("data-latex")
    if given:
        return str(given)
    if node.tag == "math":
        return _tex_within(node)
    if node.first_element_child is not None:
        return ""
    return node.text or ""  # what a page has for KaTeX to render; with delimiters or without


def _tex_within(node: "DOMNode") -> str:
    """The TeX of an element with a formula somewhere in it: as its author wrote it, if that is there."""
    given = node.getattr("data-tex") or node.getattr("data-latex")
    source = node.query_selector(_WRITTEN_SOURCE)
    if given or (source and (source.text or "").strip()):
        return str(given or source.text)
    math = node if node.tag == "math" else node.query_selector("math")
    if math:
        return str(math.getattr("alttext") or "") or mathml_to_latex(math)
    image = node.query_selector("img[alt]")
    if image:
        return image.getattr("alt") or ""
    holder = node if node.getattr("data-mathml") else node.query_selector("[data-mathml]")
    return _from_markup(holder.getattr("data-mathml") or "") if holder else ""


def _from_markup(mathml: str) -> str:
    """The TeX of MathML in an attribute or a script."""
    from resiliparse.parse.html import HTMLTree

    math = HTMLTree.parse(mathml).document.query_selector("math")
    return _tex_within(math) if math else ""


def _script_behind(node: "DOMNode") -> "DOMNode | None":
    """The script with the source of what MathJax 2 has rendered in front of it."""
    follows = node.next_element
    is_source = (
        follows is not None and follows.tag == "script" and (follows.getattr("type") or "").startswith("math/tex")
    )
    return follows if is_source else None


def _is_display(node: "DOMNode") -> bool:
    """Whether a formula stands on lines of its own."""
    classes = node.class_name or ""
    if "isplay" in classes or "element-block" in classes or "fallback-image-display" in classes:
        return True
    if "mode=display" in (node.getattr("type") or "") or node.getattr("display") in ("true", "block"):
        return True
    if node.getattr("mode") == "display" or (node.tag == "d-math" and node.hasattr("block")):
        return True
    inner = node.query_selector('math[display="block"], [class*="mwe-math-mathml-display"]')
    parent = node.parent
    within = parent is not None and any(
        word in (parent.class_name or "") for word in ("katex-display", "MathJax_Display")
    )
    return bool(inner) or within


def written_out(text: str) -> Iterator[tuple[int, int]]:
    """Yield where formulas begin and end in a text. Takes time that grows with the text, whatever is in it."""
    closes: dict[str, int] = {}  # where each closing delimiter is next; -1 if it does not come again
    end = 0
    for opening in _OPENING.finditer(text):
        start = opening.start()
        if start < end:
            continue
        closing = _closing(opening)
        place = closes.get(closing, 0)
        if 0 <= place < opening.end():
            place = closes[closing] = text.find(closing, opening.end())
        if place > opening.end() and place - start <= MAX_TEX_CHARS:
            end = place + len(closing)
            yield start, end


def _closing(opening: "re.Match[str]") -> str:
    if opening[1]:
        return f"[/{opening[1]}]"
    return f"\\end{{{opening[2]}}}" if opening[2] else _CLOSING[opening[0]]


def _stands_alone(node: "DOMNode") -> bool:
    """Whether nothing but white space is beside a node, in an element that holds more than a line of text."""
    parent = node.parent
    if parent is None or parent.tag not in _BOXES:
        return False
    return not any(_is_text(beside) for beside in (node.prev, node.next))


def _is_text(node: "DOMNode | None") -> bool:
    return node is not None and node.tag not in ("br", "p", "div", "#comment") and bool((node.text or "").strip())


def _texts(tree: "HTMLTree") -> "list[DOMNode]":
    """All pieces of text with a delimiter in them, in order."""
    found, stack = [], [tree.body] if tree.body is not None else []
    while stack:
        node = stack.pop()
        child = node.first_child
        while child is not None:
            if child.tag == "#text":
                if _OPENING.search(child.value or ""):
                    found.append(child)
            else:
                stack.append(child)
            child = child.next
    return found


def _remove(node: "DOMNode") -> None:
    if node.parent is not None:
        node.parent.remove_child(node)
