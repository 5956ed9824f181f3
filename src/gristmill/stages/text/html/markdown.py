"""A parsed page as Markdown: headings, lists, tables, quotations and blocks of code keep their form.

Links keep their text, images nothing: what is for readers of text stays. Formulas and code have become words by now
(`placeholders.py`), and come back afterwards.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resiliparse.parse.html import DOMNode, HTMLTree

MAX_DEPTH = 150  # of elements: below it their text is taken as it is
_SPACES = re.compile(r"\s+")
_BREAK = "\0"  # a `br`: line breaks of the source are spaces, and decoded pages have no NUL
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_LEFT_OUT = {
    "script", "style", "head", "noscript", "template", "iframe", "object", "svg", "canvas", "select", "option",
    "button", "input", "textarea", "audio", "video", "map", "#comment",
}  # fmt: skip
_BLOCKS = {
    "p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "figure", "figcaption", "address",
    "center", "form", "fieldset", "details", "summary", "dl", "dt", "dd", "body", "html",
}  # fmt: skip
_EMPHASIS = {"strong": "**", "b": "**", "em": "*", "i": "*"}


def to_markdown(tree: "HTMLTree") -> list[str]:
    """Return the blocks of a page: paragraphs, headings, lists, tables, quotations."""
    if tree.body is None:
        return []
    writer = _Writer()
    writer.walk(tree.body, 0)
    writer.end_block()
    return writer.blocks


class _Writer:
    """Puts blocks together, one after another."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._line: list[str] = []

    def walk(self, node: "DOMNode", depth: int) -> None:
        for child in node.child_nodes:
            tag = child.tag or ""
            if tag == "#text":
                self._line.append(child.value or "")
            elif depth > MAX_DEPTH:
                self._line.append(child.text or "")
            elif tag not in _LEFT_OUT:
                self._element(child, tag, depth + 1)

    def _element(self, node: "DOMNode", tag: str, depth: int) -> None:
        if tag == "br":
            self._line.append(_BREAK)
        elif tag == "hr":
            self.end_block()
            self.blocks.append("---")
        elif tag in _HEADINGS:
            self._add(_HEADINGS[tag], _inline(node, depth))
        elif tag in ("ul", "ol", "menu"):
            self._add("", "\n".join(_list_lines(node, depth)))
        elif tag == "table":
            self._table(node, depth)
        elif tag == "blockquote":
            inner = _Writer()
            inner.walk(node, depth)
            inner.end_block()
            self._add("", "\n>\n".join("> " + block.replace("\n", "\n> ") for block in inner.blocks))
        elif tag in _BLOCKS:
            self.end_block()
            self.walk(node, depth)
            self.end_block()
        else:
            self._emphasised(node, tag, depth)

    def _emphasised(self, node: "DOMNode", tag: str, depth: int) -> None:
        mark = _EMPHASIS.get(tag, "")
        if not mark or not (node.text or "").strip():
            self.walk(node, depth)
            return
        text = _inline(node, depth)
        before = " " if (node.text or "")[:1].isspace() else ""
        after = " " if (node.text or "")[-1:].isspace() else ""
        self._line.append(f"{before}{mark}{text}{mark}{after}" if text else "")

    def _table(self, node: "DOMNode", depth: int) -> None:
        rows = [[_cell(cell, depth) for cell in row.child_nodes if cell.tag in ("td", "th")] for row in _rows(node)]
        rows = [row for row in rows if any(row)]
        if len(rows) < 2 or max(map(len, rows)) < 2:  # a table that is there only for layout
            for row in rows:
                self._add("", "\n".join(filter(None, row)))
            return
        width = max(map(len, rows))
        lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
        self._add("", "\n".join([lines[0], "|" + "---|" * width, *lines[1:]]))

    def _add(self, before: str, text: str) -> None:
        self.end_block()
        if text.strip():
            self.blocks.append(before + text)

    def end_block(self) -> None:
        """End the paragraph that is being written."""
        lines = [_SPACES.sub(" ", line).strip() for line in "".join(self._line).split(_BREAK)]
        self._line = []
        if any(lines):
            self.blocks.append("\n".join(filter(None, lines)))


def _inline(node: "DOMNode", depth: int) -> str:
    """All of an element on one line."""
    inner = _Writer()
    inner.walk(node, depth)
    inner.end_block()
    return _SPACES.sub(" ", " ".join(inner.blocks)).strip()


def _cell(node: "DOMNode", depth: int) -> str:
    return _inline(node, depth).replace("|", "\\|")


def _rows(table: "DOMNode") -> "list[DOMNode]":
    """The rows of a table, without those of tables in it."""
    found = []
    for child in table.child_nodes:
        if child.tag == "tr":
            found.append(child)
        elif child.tag in ("thead", "tbody", "tfoot"):
            found += [row for row in child.child_nodes if row.tag == "tr"]
    return found


def _list_lines(node: "DOMNode", depth: int) -> list[str]:
    """The lines of a list; what belongs to an item is indented below it."""
    lines: list[str] = []
    number = 0
    for child in node.child_nodes:
        if child.tag != "li":
            continue
        number += 1
        inner = _Writer()
        inner.walk(child, depth)
        inner.end_block()
        mark = f"{number}. " if node.tag == "ol" else "- "
        text = "\n".join(inner.blocks)
        if text:
            lines.append(mark + text.replace("\n", "\n" + " " * len(mark)))
    return lines
