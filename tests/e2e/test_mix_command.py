"""`gristmill mix` as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fault.processes import Scene, wait_until
from tests.jsonl_files import contents, read_documents, write_documents

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
GRISTMILL = Path(sys.executable).with_name("gristmill")
CONFIG = """
output: {root}/out
sources:
  web: {{path: {root}/in}}
weights:
  quality_level: {{high: 2.5, low: 0.5}}
"""


@pytest.fixture
def config(tmp_path):
    for file in range(30):
        documents = [{"id": f"{file}-{n}", "quality_level": ("low", "high")[n % 2]} for n in range(100)]
        write_documents(tmp_path / "in" / f"{file:02d}.jsonl", documents)
    (tmp_path / "mix.yaml").write_text(CONFIG.format(root=tmp_path))
    return tmp_path / "mix.yaml"


def gristmill(*arguments, expected=0):
    done = subprocess.run([GRISTMILL, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stderr
    return done


def test_it_prints_wanted_against_got_and_answers_in_json(config, tmp_path):
    done = gristmill("mix", "--config", config, "--workers", 0, "--json")
    told = json.loads(done.stdout)

    assert "web high" in done.stderr
    assert "wanted 4,500 documents, got " in done.stderr
    assert told["got"] == told["written"] == len(read_documents(tmp_path / "out" / "mixed" / "web"))
    assert told["read"] + told["created"] == told["written"] + told["dropped_total"]
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == told


def test_a_mistake_is_one_line_and_exit_2(config, tmp_path):
    config.write_text(config.read_text().replace("weights:", "wieghts:"))
    done = gristmill("mix", "--config", config, expected=2)
    assert "got 'wieghts'; did you mean 'weights'?" in done.stderr
    assert "Traceback" not in done.stderr
    done = gristmill("mix", "--config", tmp_path / "nowhere.yaml", expected=2)
    assert "nowhere.yaml" in done.stderr


def test_killed_in_the_middle_it_continues_to_the_same_bytes(config, tmp_path):
    gristmill("mix", "--config", config, "--workers", 0, "--output", tmp_path / "undisturbed")
    ledger = tmp_path / "out" / ".gristmill" / "web" / "mix" / "ledger.jsonl"
    scene = Scene(tmp_path / "scene")
    try:
        program = scene.start(GRISTMILL, "mix", "--config", config, "--workers", 1)
        wait_until(lambda: ledger.exists() and ledger.read_bytes(), what="the ledger", program=program)
        program.kill()
        program.communicate()
    finally:
        scene.close()
    gristmill("mix", "--config", config, "--workers", 1)

    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
