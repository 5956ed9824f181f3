"""Whatever is damaged in a run directory, the same command gives the same output or a refusal in words."""

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.fault.damage import SCENES, Scene, try_seeds
from tests.fault.damage_dedup import DEDUPLICATIONS, Deduplication
from tests.property.budget import SEEDS

pytestmark = [pytest.mark.fault, pytest.mark.slow]

MEMORY = Path("/dev/shm")  # thousands of small files are made and removed; a disk takes ten times as long


@pytest.fixture
def home(tmp_path):
    if not MEMORY.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="test-damaged-", dir=MEMORY))
    yield made
    shutil.rmtree(made)


def tell(scene, seen, capsys):
    with capsys.disabled():
        outcomes = ", ".join(f"{count} {what}" for what, count in seen.items())
        print(f"\n{scene.name}: {seen.total()} damages: {outcomes}")


@pytest.mark.parametrize("place", range(len(SCENES)), ids=list(SCENES))
def test_a_damaged_run_directory_gives_the_same_output_or_a_refusal(place, home, capsys):
    name = list(SCENES)[place]
    scene = Scene(name, home, **SCENES[name])
    seeds = range(place, SEEDS, len(SCENES))
    seen = try_seeds(scene, seeds)
    tell(scene, seen, capsys)

    assert seen.total() == len(seeds)
    assert seen["same output"] + seen["finished already"] > seen.total() / 2


@pytest.mark.parametrize("name", DEDUPLICATIONS)
def test_a_damaged_deduplication_gives_the_same_output_or_a_refusal(name, home, capsys):
    """Of as many seeds as each of the runs above has, if not quite: a deduplication takes ten times as long."""
    scene = Deduplication(name, home, **DEDUPLICATIONS[name])
    seeds = range(max(10, SEEDS // 20))
    seen = try_seeds(scene, seeds)
    tell(scene, seen, capsys)

    assert seen.total() == len(seeds)
    assert seen["same output"] > seen.total() / 2
