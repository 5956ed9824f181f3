"""Whatever is damaged in a run directory, the same command gives the same output or a refusal in words."""

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.fault.damage import SCENES, try_seeds
from tests.property.budget import SEEDS

pytestmark = [pytest.mark.fault, pytest.mark.slow]

MEMORY = Path("/dev/shm")  # thousands of small files are made and removed; a disk takes ten times as long


@pytest.fixture
def home(tmp_path):
    if not MEMORY.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="gristmill-test-", dir=MEMORY))
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("place", range(len(SCENES)), ids=list(SCENES))
def test_a_damaged_run_directory_gives_the_same_output_or_a_refusal(place, home, capsys):
    name = list(SCENES)[place]
    seen = try_seeds(name, home, range(place, SEEDS, len(SCENES)))
    with capsys.disabled():
        print(f"\n{name}: {seen.total()} damages: " + ", ".join(f"{count} {what}" for what, count in seen.items()))

    assert seen.total() == len(range(place, SEEDS, len(SCENES)))
    assert seen["same output"] + seen["finished already"] > seen.total() / 2
