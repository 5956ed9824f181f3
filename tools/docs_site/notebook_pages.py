"""Tutorial notebooks as pages: text as it is, code as blocks; outputs are made when a reader runs them."""

import json
from collections.abc import Iterator
from pathlib import Path


def notebook_pages(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield a page for each notebook of a directory as (path, text)."""
    for path in sorted(directory.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        hint = f"*This page is the notebook `docs/tutorials/{path.name}`; every cell of it is run by the tests.*"
        shown = [_cell(cell) for cell in cells]
        yield f"tutorials/{path.stem}.md", "\n\n".join([shown[0], hint, *shown[1:]]) + "\n"


def _cell(cell: dict[str, object]) -> str:
    source = cell["source"]
    text = "".join(source) if isinstance(source, list) else str(source)
    return f"```python\n{text.rstrip()}\n```" if cell["cell_type"] == "code" else text.rstrip()
