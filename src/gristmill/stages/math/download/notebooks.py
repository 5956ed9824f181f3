"""Notebooks of Jupyter to text: what was written, and what came out as text. No picture, no widget."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_TERMINAL = re.compile(r"\x1b\[[0-9;]*m")  # colours of tracebacks


def notebook_text(data: bytes, *, fences: bool = False) -> str | None:
    """Return the cells of a notebook, separated by blank lines; None if it is not one.

    With `fences` code stands between Markdown fences, with the notebook's language.
    """
    try:
        notebook: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    cells = _cells(notebook)
    if cells is None:
        return None
    language = _language(notebook) if fences else ""
    blocks = [block for cell in cells if isinstance(cell, dict) for block in _blocks(cell, language, fences=fences)]
    return "\n\n".join(filter(None, blocks))


def _cells(notebook: Any) -> list[Any] | None:
    """The cells of format 4, or those of the worksheets of format 3."""
    if not isinstance(notebook, dict) or "nbformat" not in notebook:
        return None
    if isinstance(notebook.get("cells"), list):
        return list(notebook["cells"])
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets if isinstance(sheet, dict) for cell in sheet.get("cells") or []]


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    found = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def _blocks(cell: dict[str, Any], language: str, *, fences: bool) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input"))).strip("\n")
    if cell.get("cell_type") != "code":
        yield source
        return
    yield _fenced(source, language) if fences and source.strip() else source
    for output in cell.get("outputs") or []:
        text = _output(output).strip("\n") if isinstance(output, dict) else ""
        yield _fenced(text, "") if fences and text.strip() else text


def _output(output: dict[str, Any]) -> str:
    """What an output shows as text, in any format."""
    data = output.get("data")
    if isinstance(data, dict):
        latex = _text(data.get("text/latex"))
        return latex or _text(data.get("text/plain"))
    if output.get("output_type") in ("error", "pyerr"):
        return _TERMINAL.sub("", f"{output.get('ename', '')}: {output.get('evalue', '')}")
    return _text(output.get("text"))


def _text(value: Any) -> str:
    """Notebooks have a text, or a list of its lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _fenced(code: str, language: str) -> str:
    marks = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{marks}{language}\n{code}\n{marks}"
