"""A stage that fails on everything stops the run, whichever way it fails: Python raises, the command exits non-zero.

Each says the name of the stage and the true error, and nothing is committed.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fault.failing_stages import STARTS, WAYS, FailsBy, FailsToStart

from gristmill.backends.local import LocalExecutor
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


@pytest.mark.parametrize("way", ["value_error", "exit_1", "returns_a_number", "read_only", "yields_then_raises"])
def test_the_command_exits_with_1_and_says_why(way, source, tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    paths = ["--input", source, "--output", tmp_path / "out", "--set", f"way={way}"]
    command = [Path(sys.executable).parent / "gristmill", "run", tmp_path / "recipe.yaml", *paths]
    command += ["--allow-module", "tests.fault.failing_stages", "--json"]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)

    assert ended.returncode == 1, ended.stderr
    assert "fails_by" in json.loads(ended.stdout)["error"]
    assert WAYS[way][1] in json.loads(ended.stdout)["error"]
    assert "text_field" not in ended.stderr
