"""Programs under test as real processes, recognisable by a mark in their environment wherever they end up."""

import contextlib
import os
import select
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from tests.fault.hold import hold_at

ROOT = Path(__file__).resolve().parents[2]
MARK = "GRISTMILL_FAULT_TEST"
DEADLINE_S = 60
STEP_S = 0.005


@dataclass
class Scene:
    """Where one test's programs run: each has its own temporary directory, which must be empty in the end."""

    work: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    programs: list = field(default_factory=list)

    def __post_init__(self):
        self.temporary = self.work / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)

    def start(self, *arguments, cwd=ROOT, hold=None, **options):
        """Start a program; with `hold=(lines, file)` it labours until the file has so many lines, and then waits."""
        held = hold_at(*hold) if hold else {}
        environment = {**os.environ, "TMPDIR": str(self.temporary), MARK: self.mark, **held}
        command = arguments if str(arguments[0]).startswith("/") else (sys.executable, *arguments)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        program = subprocess.Popen([*map(str, command)], env=environment, cwd=cwd, **{**pipes, **options})
        self.programs.append(program)
        return program

    def close(self):
        """End what a failed test has left running."""
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            program.stdout.close()
            program.stderr.close()

    def left_behind(self):
        """What is still in the temporary directory.

        But for the file with which Python finds out whether it may write there: it makes it and removes it at once, and
        can be killed in between.
        """
        found = sorted(self.temporary.iterdir())
        return [path for path in found if path.is_dir() or path.read_bytes() not in (b"", b"blat")]

    def processes(self):
        """Everything alive that descends from a program of this test."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


def wait_until(condition, *, what, deadline_s=DEADLINE_S, program=None):
    """Poll a condition; fail with words if it never holds. With `program`, also stop when that has ended."""
    end = time.monotonic() + deadline_s
    while not (value := condition()):
        if program is not None and program.poll() is not None:
            return None
        assert time.monotonic() < end, f"waited {deadline_s} s in vain: {what}"
        pause(STEP_S)
    return value


def pause(seconds):
    """Let a moment pass between two looks at a condition, or one chosen by a seeded generator."""
    select.select([], [], [], seconds)


def finish(program, *, expected=0, deadline_s=DEADLINE_S):
    """Wait for a program's end; return what it printed."""
    out, err = program.communicate(timeout=deadline_s)
    assert program.returncode == expected, f"exit code {program.returncode}\n{err}\n{out}"
    return out, err
