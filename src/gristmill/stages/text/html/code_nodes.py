"""Code in a page: taken out character by character, without the line numbers beside it, and represented by one word.

Blocks are `pre`, and the tables and boxes that highlighters make of one (Pygments, Rouge, Chroma, SyntaxHighlighter,
highlight.js, GitHub). Code within a sentence is `code` and `samp`.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gristmill.stages.text.html.placeholders import Placeholders, is_attached

if TYPE_CHECKING:
    from resiliparse.parse.html import DOMNode, HTMLTree

_INLINE = "code, samp, tt.code, tt.literal"
_TABLES = (
    "table.highlighttable, table.rouge-table, table.lntable, .syntaxhighlighter table, table.hljs-ln, "
    "table.js-file-line-container, table.crayon-table, table.codehilitetable"
)
_NUMBERS = (
    ".linenos, .lineno, .linenodiv, td.gutter, .rouge-gutter, .gl, .hljs-ln-numbers, .blob-num, .crayon-nums, .lnt, "
    ".ln, .line-numbers-rows, .line-number, .linenumber"
)
_LINES = ".line, .crayon-line, .hljs-ln-code, .blob-code, .view-line"
_ANY = f"pre, {_INLINE}, {_TABLES}"

_LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight)-(?P<name>[\w+#.-]+)|brush:\s*(?P<brush>[\w+#-]+)"
    r"|sourceCode\s+(?P<pandoc>[\w+#-]+))"
)
_NOT_LANGUAGES = {"none", "default", "plain", "plaintext", "text", "notranslate", "highlight", "wrapper", "name"}
MAX_DEPTH = 100  # of elements in a block: below it their text is taken as it is
_BLOCKS = {"div", "p", "li", "tr", "section", "article"}


def mark_code(tree: "HTMLTree", placeholders: Placeholders, *, fences: bool = False) -> int:
    """Replace the code of a page by words that stand for it; return how many pieces there were.

    With `fences` blocks are put back as Markdown has them, with the language where the page names it.
    """
    document = tree.document
    if not document.query_selector(_ANY):
        return 0
    before = len(placeholders.kept)
    for node in document.query_selector_all(_TABLES):
        if node.parent is not None and is_attached(node):
            _replace_block(tree, placeholders, node, _table_text(node), fences=fences)
    for node in document.query_selector_all("pre"):
        if is_attached(node):
            _remove_numbers(node)
            _replace_block(tree, placeholders, node, _text_of(node), fences=fences)
    for node in document.query_selector_all(_INLINE):
        text = node.text or ""
        if text.strip() and is_attached(node) and node.parent is not None:
            text = f"`{text}`" if fences and "`" not in text and "\n" not in text else text
            node.parent.replace_child(tree.create_text_node(placeholders.keep(text)), node)
    return len(placeholders.kept) - before


def _replace_block(tree: "HTMLTree", placeholders: Placeholders, node: "DOMNode", code: str, *, fences: bool) -> None:
    if not code.strip() or node.parent is None:
        return
    code = code.removesuffix("\n")
    if fences:
        marks = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        code = f"{marks}{language_of(node)}\n{code}\n{marks}"
    paragraph = tree.create_element("p")
    paragraph.append_child(tree.create_text_node(placeholders.keep(code, block=True)))
    node.parent.replace_child(paragraph, node)


def language_of(node: "DOMNode") -> str:
    """Return the language that the classes of a block, its parents or its child name; "" if none does."""
    around: list[DOMNode] = [node, *filter(None, [node.first_element_child])]
    at = node
    for _ in range(3):
        if at.parent is None:
            break
        at = at.parent
        around.append(at)
    for each in around:
        given = each.getattr("data-lang") or each.getattr("data-language") if each.tag != "#document" else None
        found = _LANGUAGE.search(each.class_name or "") if not given else None
        name = given or (next(filter(None, found.groups()), "") if found else "")
        if name and name.lower() not in _NOT_LANGUAGES:
            return str(name).lower()
    return ""


def _table_text(node: "DOMNode") -> str:
    """The code of a highlighter's table: its `pre`, or a line for each of its lines or rows."""
    _remove_numbers(node)
    within = [pre for pre in node.query_selector_all("pre") if (pre.text or "").strip()]
    if within:
        return "\n".join(_text_of(pre).removesuffix("\n") for pre in within)
    lines = node.query_selector_all(_LINES) or node.query_selector_all("tr")
    code = "\n".join((line.text or "").strip("\n") for line in lines)
    return code.replace("\xa0", " ")  # which these have in place of the spaces a line begins with


def _remove_numbers(node: "DOMNode") -> None:
    for numbers in list(node.query_selector_all(_NUMBERS)):
        if numbers.parent is not None:
            numbers.parent.remove_child(numbers)


def _text_of(node: "DOMNode") -> str:
    """The text of a block, with a line break for each `br` and between elements that are lines."""
    return "".join(_pieces(node, 0)).replace("\r\n", "\n")


def _pieces(node: "DOMNode", depth: int) -> Iterator[str]:
    ends_line = True
    for child in node.child_nodes:
        if child.tag == "#text":
            piece = child.value or ""
        elif child.tag == "br":
            piece = "\n"
        elif child.first_element_child is None or depth > MAX_DEPTH:
            piece = child.text or ""
        else:
            piece = "".join(_pieces(child, depth + 1))
        if child.tag in _BLOCKS and not piece.endswith("\n"):
            piece = ("" if ends_line else "\n") + piece + "\n"
        if piece:
            ends_line = piece.endswith("\n")
        yield piece
