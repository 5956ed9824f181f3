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
    """Return at once, unless this program is held and has come so far; a file says which process waits."""
    lines, _, file = os.environ.get(VARIABLE, "").partition(" ")
    while file and Path(file).exists() and Path(file).read_bytes().count(b"\n") >= _number(lines):
        Path(f"{file}.held").write_text(str(os.getpid()))
        select.select([], [], [], STEP_S)


def pass_when_free():
    """Wait while held, then add a line to the file: it counts calls, and commits, which may lag, decide nothing."""
    wait_while_held()
    _, _, file = os.environ.get(VARIABLE, "").partition(" ")
    if file:
        with Path(file).open("a") as counted:
            counted.write("passed\n")


def held(file):
    """The process that waits, or waited last; None if none ever has."""
    said = Path(f"{file}.held")
    text = said.read_text() if said.exists() else ""
    return int(text) if text else None


def hold_until(limit, lines):
    """Change the number in a file; whoever reads it sees the old one or the new."""
    new = limit.with_suffix(".new")
    new.write_text(str(lines))
    new.replace(limit)


def _number(lines):
    return int(lines if lines.isdecimal() else Path(lines).read_text())
