"""With --json, standard output is one line of JSON, whatever stages print, wherever and however they do."""

import json
import subprocess
import sys

import pytest
from tests.e2e.test_command_line import gristmill, work

__all__ = ["work"]  # a fixture

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CHATTY = """
import ctypes, os, subprocess, sys
from gristmill.stages.base import ProcessingStage
print("noise: import")

def make_noise(where):
    print(f"noise: print in {where}")
    os.write(1, b"noise: write\\n")
    ctypes.CDLL(None).puts(b"noise: puts")
    ctypes.CDLL(None).fflush(None)
    subprocess.run(["echo", "noise: echo"])

class Chatty(ProcessingStage):
    name = "chatty"
    def before_fork(self):
        make_noise("before_fork")
    def setup_on_node(self, node_info=None, worker_metadata=None):
        make_noise("setup_on_node")
    def setup(self, worker_metadata=None):
        make_noise("setup")
    def process(self, task):
        make_noise("process")
        if os.path.exists("fail"):
            raise ValueError("noise: error")
        return task
    def teardown(self):
        make_noise("teardown")
    def output_directory(self):
        make_noise("output_directory")
"""


def chatty(work, command):
    (work / "chatty_stages.py").write_text(CHATTY)
    (work / "chatty.yaml").write_text(
        'name: chatty\nstages:\n- JsonlReader: {file_paths: "${input}"}\n'
        '- chatty_stages.Chatty\n- JsonlWriter: {path: "${output}"}\n'
    )
    return (command, "chatty.yaml", "--input", "raw", "--output", "clean", "--allow-module", "chatty_stages", "--json")


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_stages_print_is_not_in_the_answer(work, workers):
    done = gristmill(*chatty(work, "run"), "--workers", workers, cwd=work)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"] == 4
    for noise in ("import", "print in process", "print in setup", "print in teardown", "write", "puts", "echo"):
        assert f"noise: {noise}" in done.stderr


def test_the_answer_of_a_command_that_fails_is_one_line_too(work):
    (work / "fail").touch()
    done = gristmill(*chatty(work, "run"), "--workers", "0", cwd=work)

    assert done.returncode != 0
    assert "noise: error" in json.loads(done.stdout)["error"]


def test_planning_prints_nothing_into_the_answer(work):
    done = gristmill(*chatty(work, "plan"), cwd=work)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "chatty"
    assert "noise: print in output_directory" in done.stderr


PROGRAM = """
from chatty_stages import Chatty
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
Pipeline("p", stages=[JsonlReader("raw"), Chatty(), JsonlWriter("out")]).run(LocalExecutor(num_workers=1))
"""


def test_workers_print_to_standard_error_in_a_program_too(work):
    """Its own standard output has what it prints itself: the import and the planning."""
    chatty(work, "run")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=work, capture_output=True, text=True, timeout=60, check=True
    )

    for where in ("before_fork", "setup_on_node", "setup", "process", "teardown"):
        assert f"print in {where}\n" not in done.stdout
    assert "print in process" in done.stderr
    assert "print in output_directory" in done.stdout
