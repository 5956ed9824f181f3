"""Tests that share a cluster run in one process, whatever the versions of pytest and pytest-xdist."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPED = """
import os, pathlib, pytest

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("n", range(6))
def test_it(n):
    pathlib.Path(__file__).with_name(os.environ["PYTEST_XDIST_WORKER"]).touch()
"""


@pytest.mark.slow
def test_a_group_of_tests_runs_in_one_process(tmp_path):
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    (tmp_path / "conftest.py").write_text("from tests.xdist_groups import pytest_collection_modifyitems\n")
    options = ["-n2", "--dist", "loadgroup", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", *options, "-c", "/dev/null", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)

    assert len(list(tmp_path.glob("gw*"))) == 1
