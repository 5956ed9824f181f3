"""Snippets of README and guide as scripts.

The blocks of one file become one script, each line at its own line number, so that a traceback points into the
document. ```python blocks share a namespace; in ```console blocks the lines `$ gristmill …` are run in place. The fence
```python no-run is only shown.
"""

import re
import shlex
from collections.abc import Callable, Iterator


def run_command(line: str) -> str:
    """Return the Python line that runs one console line, or nothing for a line of output or of another program."""
    if not line.startswith("$ gristmill"):
        return ""
    return f"__import__('subprocess').run({shlex.split(line.removeprefix('$ '), comments=True)!r}, check=True)"


def script_lines(document: str, at_block: Callable[[int], str] = lambda number: "") -> Iterator[str]:
    """Yield one line for each line of the document, blank unless it belongs to a snippet that is run.

    `at_block` gives what stands instead of the line that opens a snippet, of which it is told the number.
    """
    language = None
    for number, line in enumerate(document.splitlines(), start=1):
        if line.startswith("```"):
            language = line.removeprefix("```").strip() if language is None else None
            yield at_block(number) if language in ("python", "console") else ""
        elif language == "console":
            yield run_command(line)
        else:
            yield line if language == "python" else ""


def install_lines(document: str) -> list[str]:
    """Return the commands that install the package, as the document shows them."""
    shown = re.findall(r"^\$ (pip install .*)$", document, flags=re.MULTILINE)
    return [line.partition("#")[0].strip() for line in shown]
