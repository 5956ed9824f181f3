"""What README and the guide show is what happens: every snippet is run as a reader would run it.

The blocks of one file become one script in an empty directory (`tools/snippets.py`). Lines `$ make …` must name a
target of the Makefile.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.snippets import install_lines, script_lines

REPOSITORY = Path(__file__).parents[2]
FIRST = [REPOSITORY / "README.md", REPOSITORY / "docs" / "index.md"]
DOCUMENTS = [*FIRST, *sorted((REPOSITORY / "docs" / "guide").glob("*.md"))]


def names(path):
    return path.relative_to(REPOSITORY).as_posix()


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


def test_readme_installs_from_a_checkout_and_from_a_wheel():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")

    assert install_lines(readme) == ["pip install .", "pip install gristmill-*.whl"]
    assert readme.index("pip install .") < readme.index("## "), "on the first screen"
