"""A stage that fails on everything stops the run, whichever way it fails: Python raises, the command exits non-zero.

Each says the name of the stage and the true error, and nothing is committed.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.fault.failing_stages import STARTS, WAYS, FailsBy, FailsToStart

from gristmill.backends.local import LocalExecutor
from gristmill.cli.main import main
from gristmill.errors import GristmillError, MachineFailed, StageBroken
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter

ROOT = Path(__file__).parents[2]
OF_THE_MACHINE = {"disk_full", "disk_error", "read_only"}
DOCUMENTS = 120

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("in")
    for file in range(2):
        lines = [json.dumps({"id": f"{file}-{n}", "text": "some words"}) for n in range(DOCUMENTS // 2)]
        (path / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch):
    monkeypatch.setattr("gristmill.engine.policies.retry.MAX_PAUSE_S", 0.01)


def run(stage, source, out):
    stages = [JsonlReader(str(source)), stage, JsonlWriter(str(out))]
    return Pipeline("fails", stages=stages).run(LocalExecutor(num_workers=2))


@pytest.mark.parametrize("way", WAYS)
def test_a_stage_that_fails_on_everything_stops_the_run(way, source, tmp_path):
    expected = MachineFailed if way in OF_THE_MACHINE else StageBroken
    with pytest.raises(expected) as stopped:
        run(FailsBy(way=way), source, tmp_path / "out")
    message = str(stopped.value)

    assert "fails_by" in message
    assert WAYS[way][1] in message
    assert len(message) < 20_000
    assert (tmp_path / "out/.gristmill/ledger.jsonl").read_text() == ""
    assert list((tmp_path / "out").glob("*.jsonl")) == []


@pytest.mark.parametrize("way", STARTS)
def test_a_stage_that_cannot_start_stops_the_run(way, source, tmp_path):
    with pytest.raises((GristmillError, OSError)) as stopped:
        run(FailsToStart(way=way), source, tmp_path / "out")

    assert STARTS[way] in str(stopped.value)
    assert list((tmp_path / "out").glob("*.jsonl")) == []


RECIPE = """
name: fails
stages:
- JsonlReader: {file_paths: "${input}"}
- tests.fault.failing_stages.FailsBy: {way: "${way}"}
- JsonlWriter: {path: "${output}"}
"""


def command(way, source, home):
    (home / "recipe.yaml").write_text(RECIPE)
    paths = ["--input", source, "--output", home / "out", "--set", f"way={way}"]
    return [*map(str, ["run", home / "recipe.yaml", *paths, "--allow-module", "tests.fault.failing_stages", "--json"])]


def limit_s():
    """20 seconds on a machine that has nothing else to do."""
    return 20 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))


def check_said(way, answer, told):
    assert "fails_by" in json.loads(answer)["error"]
    assert WAYS[way][1] in json.loads(answer)["error"]
    assert "text_field" not in told


@pytest.mark.parametrize("way", WAYS)
def test_the_command_exits_with_1_and_says_why(way, source, tmp_path, monkeypatch, capfd):
    """Called in this process, which has everything imported: forty commands would spend a minute on that alone."""
    monkeypatch.setattr(sys, "argv", ["gristmill", *command(way, source, tmp_path)])
    before = time.monotonic()
    with pytest.raises(SystemExit) as left:
        main()
    said = capfd.readouterr()

    assert left.value.code == 1, said.err
    check_said(way, said.out, said.err)
    assert time.monotonic() - before < limit_s()


@pytest.mark.parametrize("way", ["value_error", "exit_1", "disk_full"])
def test_so_does_the_installed_command(way, source, tmp_path):
    """With pauses as they are: those of a full disk take three quarters of the time there is."""
    before = time.monotonic()
    installed = [str(Path(sys.executable).parent / "gristmill"), *command(way, source, tmp_path)]
    ended = subprocess.run(installed, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)

    assert ended.returncode == 1, ended.stderr
    check_said(way, ended.stdout, ended.stderr)
    assert time.monotonic() - before < limit_s()
