"""`gristmill dashboard`, and `gristmill run --dashboard`: who starts it, who ends it, whom it answers."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

COMMAND = [sys.executable, "-m", "gristmill.cli.main"]
OWN = """
import time
from pathlib import Path
from gristmill.stages.base import ProcessingStage

class Waits(ProcessingStage):
    name = "waits"
    def process(self, batch):
        while not Path("go").exists():
            time.sleep(0.02)
        return batch
"""


@pytest.fixture
def work(tmp_path):
    (tmp_path / "own_stages.py").write_text(OWN)
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps({"id": f"d{n}", "text": "words"}) + "\n" for n in range(50)))
    stages = ('JsonlReader: {file_paths: "${input}"}', "own_stages.Waits", 'JsonlWriter: {path: "${output}"}')
    (tmp_path / "own.yaml").write_text("name: own\nstages:\n" + "".join(f"- {stage}\n" for stage in stages))
    return tmp_path


def asked(address: str, question: str):
    home, _, token = address.partition("#token=")
    request = urllib.request.Request(f"{home}api/{question}", headers={"X-Gristmill-Token": token})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def is_served(address: str) -> bool:
    try:
        asked(address, "runs")
    except (OSError, http.client.HTTPException):  # it may end in the middle of an answer
        return False
    return True


@pytest.fixture
def run(work):
    """A run that waits, with its dashboard."""
    arguments = ("run", "own.yaml", "--allow-module", "own_stages", "-i", "raw.jsonl", "-o", "out", "--dashboard")
    with subprocess.Popen([*COMMAND, *arguments], cwd=work, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, next(line.split()[-1] for line in process.stderr if line.startswith("dashboard "))
        finally:
            (work / "go").touch()


def test_it_follows_the_run_and_ends_with_it(work, run):
    process, address = run
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{32}", address)
    while asked(address, "run")["run"] != "running":
        pass
    (work / "go").touch()
    process.stderr.read()
    assert process.wait() == 0
    assert not is_served(address)


def test_it_ends_with_a_run_that_is_killed(run):
    process, address = run
    assert is_served(address)
    os.kill(process.pid, signal.SIGKILL)
    while is_served(address):  # until it has heard that its input has ended
        pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0", "--no-token"), "expected a token for '0.0.0.0'"),
        (("--host", "192.0.2.1"), "expected to listen on 192.0.2.1:0"),
    ],
)
def test_what_it_cannot_do_is_said_before_it_starts(tmp_path, arguments, words):
    (tmp_path / "status.json").write_text("{}")
    command = [*COMMAND, "dashboard", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr
