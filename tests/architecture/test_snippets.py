"""What README and the guide show is what happens: every snippet is run as a reader would run it.

The blocks of one file become one script in an empty directory, each line at its own line number, so that a traceback
points into the document. ```python blocks share a namespace; in ```console blocks the lines `$ gristmill …` are run in
place, and lines `$ make …` must name a target of the Makefile. The fence ```python no-run is only shown.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "guide").glob("*.md"))]


def names(path):
    return path.relative_to(REPOSITORY).as_posix()


def run_command(line: str) -> str:
    """Return the Python line that runs one console line, or nothing for a line of output or of make."""
    if not line.startswith("$ gristmill"):
        return ""
    return f"__import__('subprocess').run({shlex.split(line.removeprefix('$ '), comments=True)!r}, check=True)"


def script_lines(document: str) -> Iterator[str]:
    """Yield one line for each line of the document, blank unless it belongs to a snippet that is run."""
    language = None
    for line in document.splitlines():
        if line.startswith("```"):
            language = line.removeprefix("```").strip() if language is None else None
            yield ""
        elif language == "console":
            yield run_command(line)
        else:
            yield line if language == "python" else ""


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_the_snippets_of_a_document_run(document, tmp_path):
    script = tmp_path / f"{document.stem}.py"
    script.write_text("\n".join(script_lines(document.read_text(encoding="utf-8"))), encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path}
    command = [sys.executable, script.name]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"{names(document)}:\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=names)
def test_every_make_target_a_document_shows_exists(document):
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE))
    shown = set(re.findall(r"^\$ make ([a-z0-9-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE))

    assert shown - targets == set()


def test_only_snippets_meant_to_run_reach_the_script():
    document = "text\n```python\nx = 1\n```\n```python no-run\ny\n```\n```console\n$ gristmill plan a.yaml\nout\n```\n"

    assert [(number, line) for number, line in enumerate(script_lines(document), start=1) if line] == [
        (3, "x = 1"),
        (9, "__import__('subprocess').run(['gristmill', 'plan', 'a.yaml'], check=True)"),
    ]
