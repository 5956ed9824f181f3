"""A disk that fails is never blamed on documents: the run stops in words, and the same command does what is left.

Every call that makes, writes, syncs, renames or removes a file of a small run fails once, for a while or for good, each
in a run of its own (`disk/failing.py`). What is left is continued on a disk that works again.
"""

import errno
import os

import pytest
from tests.fault.disk.explorer import _difference, take_log
from tests.fault.disk.failing import Failing
from tests.fault.disk.file_log import FileLog
from tests.fault.disk.programs import PROGRAMS
from tests.fault.test_crash_points import NIGHTLY, place  # noqa: F401  # a fixture

from gristmill.engine.policies import retry
from gristmill.errors import ConfigError, MachineError, MachineFailed

NUMBERS = [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.ESTALE]
CASES = [("curate", errno.ENOSPC, True), ("curate", errno.EIO, False), ("regroup", errno.ENOSPC, False)]
CASES += [("exact", errno.EDQUOT, True), ("fuzzy", errno.EIO, False), ("durable", errno.EIO, True)]
STEP = {"curate": 1, "durable": 5, "regroup": 5, "exact": 23, "fuzzy": 19}  # each so many-th call, in `make test`
ALL_CASES = [(name, number, lasting) for name in STEP for number in NUMBERS for lasting in (True, False)]

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(14400 if NIGHTLY else 900)]


@pytest.fixture
def impatient(monkeypatch):
    """What may pass is tried again once, at once: how long a run waits is tested elsewhere."""
    monkeypatch.setattr(retry, "MAX_MACHINE", 1)
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("name", "number", "lasting"), ALL_CASES if NIGHTLY else CASES)
def test_a_call_that_fails_stops_the_run_in_words_or_does_no_harm(place, name, number, lasting, capsys):  # noqa: F811
    program = PROGRAMS[name](place)
    _, books, expected = take_log(program)
    wrong, stopped, at = [], 0, 1
    while True:
        program.clear()
        failing = Failing(number, at, lasting=lasting)
        said = _disturbed(program, failing)
        if not failing.failed:
            break
        stopped += bool(said)
        wrong += [
            f"call {at}, {failing.path}: {problem}" for problem in _problems(program, failing, said, books, expected)
        ]
        at += 1 if NIGHTLY else STEP[name]

    with capsys.disabled():
        again = "lasting" if lasting else "once"
        print(f"\n{name}, {os.strerror(number)}, {again}: {at} calls, {stopped} runs stopped, {len(wrong)} wrong")
    assert stopped > 3
    assert not wrong, "\n".join(wrong[:20])


def _disturbed(program, failing):
    """Run on a failing disk; return what the run raised."""
    with FileLog(program.work, fails=failing).taken():
        try:
            program.run()
        except Exception as error:  # noqa: BLE001  # a raw error is what is looked for
            return error
    return None


def _problems(program, failing, said, books, expected):
    if said is None:
        if problem := _difference(expected, program.found()):
            yield f"returned, but {problem}"
    elif not isinstance(said, MachineFailed | MachineError | ConfigError):
        yield f"raw {said!r}"
    elif os.strerror(failing.number) not in str(said):
        yield f"does not tell the error: {said}"
    elif isinstance(said, MachineFailed) and "run the same command again" not in str(said):
        yield f"does not tell how to go on: {said}"
    elif str(program.work) not in str(said):
        yield f"does not tell where: {said}"
    try:
        got = program.run()
    except Exception as error:  # noqa: BLE001
        yield f"cannot go on: {error!r}"
        return
    if problem := _difference(expected, program.found()) or ("other books" if got != books else ""):
        yield f"goes on to {problem}"
