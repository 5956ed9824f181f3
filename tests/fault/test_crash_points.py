"""The machine may stop at any moment and lose whatever was not synced: the same command still gives the same bytes.

Every operation on files of a small run is noted; for each beginning of that log, the directory is made as a file system
may leave it (`disk/crashes.py`), the machine is another, and the run is continued. `make test` tries one state in ten
of a run of three partitions and a smaller share of the others'. `make test-nightly` tries every state of every run but
a deduplication, of which a state takes five times as long, and thousands with two or any number of losses.

Two states are different if a file, a directory or a byte is. Two logs of one run have other times in them, so a program
is one test with one log: otherwise nobody could tell which states another test has tried.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.fault.disk.crashes import Disk
from tests.fault.disk.explorer import Tally, all_states, explore, random_states, states_after_two_crashes, take_log
from tests.fault.disk.programs import PROGRAMS
from tests.fault.disk.summary import FLOOR, PROPERTY

from gristmill.runs import sinks as lock_file

NIGHTLY = FLOOR > 0


class Budget(NamedTuple):
    """How much of a program is tried."""

    one_in: int  # of the crashes with one loss, or all
    pairs: int  # one in so many of all pairs of losses, or none
    random: int  # crashes with any combination of losses
    resumed: int  # runs after a crash that are crashed again, at 15 places each


# The longest first: the other process has something to do for as long.
BUDGETS = (
    {
        "curate": Budget(1, 8, 1000, 60),
        "regroup": Budget(2, 0, 1000, 40),
        "fresh": Budget(1, 9, 1000, 60),
        "durable": Budget(1, 4, 1000, 60),
        "fuzzy": Budget(50, 0, 300, 10),
        "exact": Budget(45, 0, 300, 10),
        "overwrite": Budget(1, 9, 1000, 60),
        "payloads": Budget(1, 4, 1000, 40),
    }
    if NIGHTLY
    else {
        "curate": Budget(10, 0, 20, 6),
        "durable": Budget(60, 0, 10, 0),
        "fresh": Budget(60, 0, 10, 0),
        "overwrite": Budget(60, 0, 10, 0),
        "payloads": Budget(60, 0, 10, 2),
        "regroup": Budget(300, 0, 10, 6),
        "exact": Budget(5003, 0, 10, 0),
        "fuzzy": Budget(3001, 0, 10, 0),
    }
)

TWICE = 8  # of so many states one is followed by the command twice, to find everything done

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(14400 if NIGHTLY else 900)]


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A directory in memory, where there is such a file system: thousands of directories are made and removed."""
    monkeypatch.setattr(lock_file, "BOOT_ID", lock_file.BOOT_ID)  # restarted by the program, put back here
    shared = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=shared)) if shared.is_dir() else tmp_path
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_every_program_is_tried():
    assert BUDGETS.keys() == PROGRAMS.keys()


@pytest.mark.parametrize("name", list(BUDGETS))
def test_the_same_command_goes_on_from_every_state_a_crash_may_leave(place, name, capsys, record_property):
    budget = BUDGETS[name]
    program = PROGRAMS[name](place)
    log, books, expected = take_log(program)
    chance = random.Random(name)
    seen = set()
    tally = Tally()
    for states in (
        all_states(log, pairs=budget.pairs, one_in=budget.one_in),
        random_states(log, chance, budget.random),
        states_after_two_crashes(program, log, chance, first=budget.resumed, second=15),
    ):
        tally += explore(program, states, books, expected, seen=seen, twice=TWICE)

    told = f"{name}: {len(log.operations) - log.begun} operations, {tally}"
    record_property(PROPERTY, [told, tally.tried])
    with capsys.disabled():
        print(f"\n{told}")
    assert tally.tried > 10
    assert not tally.wrong, "\n".join(tally.wrong)
    assert not tally.refused or name == "fresh", tally


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(("floor", "code", "said"), [(7, 0, "in all: 7 diff"), (8, 1, "expected 8 at least")])
def test_a_night_with_too_few_states_fails(tmp_path, processes, floor, code, said):
    """Whichever process has tried them, the one that prints knows how many there were."""
    lines = [f"def test_{n}(record_property): record_property({PROPERTY!r}, ['some', {n}])" for n in (3, 4)]
    (tmp_path / "test_states.py").write_text("\n".join(lines))
    options = ["-p", "tests.fault.disk.summary", "-p", "no:cacheprovider", "-n", processes, "--rootdir", str(tmp_path)]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *options, str(tmp_path)],
        env={**os.environ, "GRISTMILL_CRASH_STATES": str(floor), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == code, ended.stdout
    assert said in ended.stdout


def test_without_force_a_crash_loses_what_was_written(tmp_path):
    """The test of the test: the model does lose what nobody has synced, and keeps what somebody has."""
    from tests.fault.disk.file_log import FileLog

    from gristmill.storage.atomic_write import write_file

    log = FileLog(tmp_path)
    with log.taken():
        (tmp_path / "careless").write_text("x")
        write_file(f"{tmp_path}/careful", [b"y"])
    disk = Disk(log.operations)

    assert disk.tree() == {"": None, "careless": b"x", "careful": b"y"}
    kept = disk.tree(set(disk.pending), {file: disk.safe.get(file, b"") for file in disk.unsafe()})
    assert kept["careful"] == b"y"
    assert kept.get("careless", b"") == b""
