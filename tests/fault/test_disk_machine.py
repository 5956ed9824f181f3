"""Runs, crashes, full disks, failing syncs and flipped bits in any order, against a plain model of what must hold.

The model is small: after any of it, the command either gives the bytes and books of a run nobody has disturbed, or says
in words that it cannot go on; and what it has given once, it gives again. What a crash may lose is `disk/crashes.py`'s,
what a run had synced before it is carried from step to step: a file nobody touches stays as safe as it was.
"""

import errno
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.fault.disk.crashes import Disk, random_crash
from tests.fault.disk.explorer import _difference, take_log
from tests.fault.disk.failing import Failing
from tests.fault.disk.file_log import FileLog
from tests.fault.disk.programs import PROGRAMS, build
from tests.property.budget import SEEDS

from gristmill.engine.policies import retry
from gristmill.errors import ConfigError, GristmillError, MachineError, MachineFailed
from gristmill.runs import sinks as lock_file

FAILURES = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS]
CALLS = 130  # about as many as an undisturbed run makes

pytestmark = [pytest.mark.fault, pytest.mark.slow]


class DiskMachine(RuleBasedStateMachine):
    """One directory, one command."""

    program_name = "curate"

    def __init__(self):
        super().__init__()
        shared = Path("/dev/shm")
        self.place = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
        self.program = PROGRAMS[self.program_name](self.place)
        self.log = None  # of the last command, from which a crash can be made
        self.finished = False  # the bytes are there, and nothing has happened to them since
        self.flipped = False  # a bit of a file the run remembers by was changed: it may refuse

    @initialize()
    def learn(self):
        _, self.books, self.expected = take_log(self.program)
        self.program.clear()

    def _run(self, fails=None):
        """Give the command; return what it raised."""
        self.log = FileLog(self.program.work, fails=fails)
        with self.log.taken():
            try:
                self.got = self.program.run()
            except GristmillError as error:
                return error
        return None

    @rule()
    def give_the_command(self):
        error = self._run()
        if error is None:
            self.finished = True
            assert self.got == self.books
        else:
            assert self.flipped, f"refused without a reason: {error}"
            self.program.clear()  # as the message says
            self.log, self.flipped = None, False

    @rule(at=st.integers(1, CALLS), number=st.sampled_from(FAILURES), lasting=st.booleans())
    def give_it_on_a_failing_disk(self, at, number, lasting):
        failing = Failing(number, at, lasting=lasting)
        error = self._run(failing)
        self.finished = error is None
        if error is not None and not self.flipped:
            assert failing.failed
            assert isinstance(error, MachineFailed | MachineError | ConfigError)

    @precondition(lambda self: self.log is not None)
    @rule(chance=st.integers(0, 2**32), point=st.floats(0, 1))
    def crash(self, chance, point):
        """The machine stops somewhere in the last command, or after it, and comes back."""
        done = self.log.begun + round(point * (len(self.log.operations) - self.log.begun))
        disk = Disk(self.log.operations[:done])
        _, lost, damaged = random_crash(disk, random.Random(chance))
        build(self.program.work, disk.tree(lost, damaged))
        self.program.restart()
        self.log, self.finished = None, False

    @precondition(lambda self: self.log is not None)
    @rule(point=st.floats(0, 1))
    def kill(self, point):
        """The process ends somewhere in the last command; the machine goes on."""
        done = self.log.begun + round(point * (len(self.log.operations) - self.log.begun))
        build(self.program.work, Disk(self.log.operations[:done]).tree())
        self.log, self.finished = None, False

    @rule(chance=st.integers(0, 2**32))
    def flip_a_bit_and_restart(self, chance):
        """A file is damaged while the machine is off."""
        choose = random.Random(chance)
        files = [path for path in sorted(self.program.work.rglob("*")) if path.is_file() and path.stat().st_size]
        if not files:
            return
        path = choose.choice(files)
        content = bytearray(path.read_bytes())
        content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
        path.write_bytes(content)
        self.program.restart()
        self.log, self.finished = None, False
        self.flipped = self.flipped or path.name == "header.json"

    @invariant()
    def what_was_given_is_there(self):
        if self.finished:
            assert not _difference(self.expected, self.program.found())

    def teardown(self):
        shutil.rmtree(self.place, ignore_errors=True)


class RegroupMachine(DiskMachine):
    program_name = "regroup"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(retry, "MAX_MACHINE", 1)
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.0)
    monkeypatch.setattr(lock_file, "BOOT_ID", lock_file.BOOT_ID)


@pytest.mark.parametrize("machine", [DiskMachine, RegroupMachine])
def test_any_order_of_runs_crashes_and_failures_ends_in_the_same_bytes(machine):
    bounds = settings(max_examples=max(12, SEEDS // 16), stateful_step_count=12, deadline=None, derandomize=True)
    run_state_machine_as_test(machine, settings=bounds)
