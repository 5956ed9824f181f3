"""The machine may stop at any moment and lose whatever was not synced: the same command still gives the same bytes.

Every operation on files of a small run is noted; for each beginning of that log, the directory is made as a file system
may leave it (`disk/crashes.py`), the machine is another, and the run is continued. `make test` tries every state of a
run of three partitions and a share of the others'; `make test-nightly` tries all, pairs of losses and random ones.
"""

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from tests.fault.disk.crashes import Disk
from tests.fault.disk.explorer import all_states, explore, random_states, take_log
from tests.fault.disk.programs import PROGRAMS
from tests.property.budget import SEEDS

from gristmill.runs import lock_file

NIGHTLY = SEEDS >= 1000
# Of each program: its states are tried in so many parts, and in `make test` each so many-th of them.
PARTS = {"curate": 2} if not NIGHTLY else dict.fromkeys(PROGRAMS, 8)
EVERY = {"durable": 60, "fresh": 60, "overwrite": 60, "regroup": 300, "exact": 5003, "fuzzy": 3001}
PAIRS = 20 if NIGHTLY else 0
RANDOM = 1000 if NIGHTLY else 10  # states with any combination of losses, in each part

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(14400 if NIGHTLY else 900)]


@pytest.fixture
def place(monkeypatch, tmp_path):
    """A directory in memory, where there is such a file system: thousands of directories are made and removed."""
    monkeypatch.setattr(lock_file, "BOOT_ID", lock_file.BOOT_ID)  # restarted by the program, put back here
    shared = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=shared)) if shared.is_dir() else tmp_path
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in PROGRAMS for part in range(PARTS.get(name, 1))])
def test_the_same_command_goes_on_from_every_state_a_crash_may_leave(place, name, part, capsys):
    program = PROGRAMS[name](place)
    log, books, expected = take_log(program)
    states = all_states(log, pairs=PAIRS, every=1 if NIGHTLY else EVERY.get(name, 1))
    tally = explore(program, states, books, expected, share=(part, PARTS.get(name, 1)))
    chance = random.Random(f"{name} {part}")
    tally += explore(program, random_states(log, chance, RANDOM), books, expected)

    with capsys.disabled():
        print(
            f"\n{name}, part {part + 1} of {PARTS.get(name, 1)}: {len(log.operations) - log.begun} operations, {tally}"
        )
    assert tally.tried > 20
    assert not tally.wrong, "\n".join(tally.wrong)
    assert not tally.refused or name == "fresh", tally


@pytest.mark.parametrize("name", ["curate", "regroup"] if not NIGHTLY else [*PROGRAMS])
def test_a_crash_while_a_run_goes_on_after_a_crash(place, name, capsys):
    """The second crash is as the first: what was put right after the first counts as little as anything not synced."""
    program = PROGRAMS[name](place)
    log, books, expected = take_log(program)
    chance = random.Random(name)
    tally = None
    for what, tree, _ in random_states(log, chance, 200 if NIGHTLY else 6):
        again, _, _ = take_log(program, tree)
        states = ((f"{what}; then {then}", *rest) for then, *rest in random_states(again, chance, 15))
        tried = explore(program, states, books, expected)
        tally = tried if tally is None else tally + tried

    with capsys.disabled():
        print(f"\n{name}, twice: {tally}")
    assert not tally.wrong, "\n".join(tally.wrong)
    assert not tally.refused or name == "fresh", tally


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
