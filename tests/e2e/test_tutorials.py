"""The tutorial notebooks run: each as a plain program in an empty directory, and in a kernel with what a reader sees.

Their outputs are not kept in the files: they would go stale, and whoever opens one makes them anew.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))
WRITE = "%%writefile "
DEADLINE_S = 240


def names(path):
    return path.stem


def cells_of(path, kind="code"):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def as_program(cell):
    """A cell in plain Python: the one magic that is used writes a file."""
    if not cell.startswith(WRITE):
        return cell
    name, _, content = cell.removeprefix(WRITE).partition("\n")
    return f"__import__('pathlib').Path({name.strip()!r}).write_text({content!r} + chr(10))"


def test_there_are_three():
    assert [path.stem for path in TUTORIALS] == [
        "a-stage-with-a-model",
        "clean-a-crawl",
        "deduplicate-and-look-at-clusters",
    ]


@pytest.mark.parametrize("path", TUTORIALS, ids=names)
def test_a_notebook_begins_with_a_title_and_keeps_no_output(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]

    assert cells_of(path, "markdown")[0].startswith("# ")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if "outputs" in cell)


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("path", TUTORIALS, ids=names)
def test_a_notebook_runs_as_a_program_and_once_more(path, tmp_path):
    """The second time as readers do who run all cells again. Deduplication, several runs a time, has one go."""
    script = tmp_path / f"{path.stem.replace('-', '_')}.py"
    script.write_text("\n\n".join(map(as_program, cells_of(path))), encoding="utf-8")
    for _ in range(1 if path.stem.startswith("deduplicate") else 2):
        done = subprocess.run(
            [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
        assert done.returncode == 0, f"{path.name}:\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("path", TUTORIALS, ids=names)
def test_a_notebook_shows_tables_and_pictures_in_a_kernel(path, tmp_path):
    from jupyter_client.manager import start_new_kernel

    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    manager, client = start_new_kernel(
        kernel_name="python3", cwd=str(tmp_path), env=environment, startup_timeout=DEADLINE_S
    )
    shown = []
    try:
        for cell in cells_of(path):
            reply = client.execute_interactive(cell, timeout=DEADLINE_S, output_hook=shown.append)
            assert reply["content"]["status"] == "ok", f"{cell}\n{reply['content']}"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    pages = [m["content"]["data"].get("text/html", "") for m in shown if m["msg_type"] == "execute_result"]

    assert any("<svg" in page for page in pages), "the funnel of a result"
    assert any("<table" in page for page in pages)
    assert not any("<script" in page for page in pages)
