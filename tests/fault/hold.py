"""How a test has a program wait where it is to be hit, so that the speed of the machine decides nothing.

The program is told by its environment, not by its configuration: another with the same configuration must be able to
resume what it leaves.
"""

import os
import select
from pathlib import Path

VARIABLE = "GRISTMILL_FAULT_HOLD"
STEP_S = 0.005


def hold_at(lines, file):
    """The environment of a program whose labour stands still while the file has so many lines.

    `lines` is a number, or the path of a file with one, which the test may change.
    """
    return {VARIABLE: f"{lines} {file}"}


def wait_while_held():
    """Return at once, unless this program is held and has come so far."""
    lines, _, file = os.environ.get(VARIABLE, "").partition(" ")
    while file and Path(file).exists() and Path(file).read_bytes().count(b"\n") >= _number(lines):
        select.select([], [], [], STEP_S)


def _number(lines):
    return int(lines if lines.isdecimal() else Path(lines).read_text())
