"""The tests do not depend on how they were started: here, as a shell starts what it runs in the background."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.fault, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
CTRL_C = "tests/e2e/test_command_line.py::test_ctrl_c_says_how_to_continue_and_the_same_command_does"
OF_A_RUN = "tests/fault/test_interrupt.py::test_a_status_after_ctrl_c_says_stopped"


def ignore_ctrl_c():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_the_tests_of_ctrl_c_pass_where_it_was_ignored():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", CTRL_C, OF_A_RUN]
    done = subprocess.run(
        command, cwd=ROOT, preexec_fn=ignore_ctrl_c, capture_output=True, text=True, check=False, timeout=300
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
