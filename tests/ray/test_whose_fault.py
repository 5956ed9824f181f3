"""Whose fault it is, on a cluster: the rules of one machine hold for actors, and for Ray Data that schedules itself."""

import errno
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fault.failing_stages import WAYS, FailsBy

from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.errors import InputsChanged, MachineFailed, StageBroken
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

ROWS = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("ray_cluster"),
]
EXECUTORS = {"actors": RayActorPoolExecutor, "ray_data": lambda: RayDataExecutor({"cpus": 2})}


@dataclass
class WritesUntil(JsonlWriter):
    """A writer whose disk is full until somebody makes room."""

    room: str = ""
    number: int = errno.ENOSPC

    def encode(self, task):
        if not Path(self.room).exists():
            raise OSError(self.number, "No space left on device")
        return super().encode(task)


@dataclass
class ChangesItsInput(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Cuts one input file while the run is under way; it does not matter which partition does it."""

    victim: str = ""
    name: str = "changes_its_input"

    def process(self, task):
        with Path(self.victim).open("r+b") as file:
            file.truncate(100)
        return task


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(3):
        lines = [json.dumps({"id": f"{file}-{n}", "text": "x" * 20}) for n in range(ROWS)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "in"


def run(executor, *stages, out):
    return Pipeline("faults", stages=[*stages]).run(executor(), checkpoint_path=out / ".gristmill")


def lines(out):
    return sorted(line for path in out.glob("*.jsonl") for line in path.read_text().splitlines())


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_a_full_disk_costs_no_document_and_the_same_command_goes_on(executor, source, tmp_path):
    out, room = tmp_path / "out", tmp_path / "room"
    stages = [JsonlReader(str(source)), WritesUntil(str(out), room=str(room), number=errno.EROFS)]
    with pytest.raises(MachineFailed, match="No space left on device"):
        run(executor, *stages, out=out)
    assert lines(out) == []

    room.touch()
    result = run(executor, *stages, out=out)
    assert (result.read, result.written, result.quarantined) == (3 * ROWS, 3 * ROWS, 0)
    assert lines(out) == lines(source)


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_a_stage_that_raises_on_everything_stops_the_run(executor, source, tmp_path):
    stages = [JsonlReader(str(source)), FailsBy(way="value_error"), JsonlWriter(str(tmp_path / "out"))]
    with pytest.raises(StageBroken, match=r"fails_by: .*(failed|passed)") as stopped:
        run(executor, *stages, out=tmp_path / "out")

    assert "ValueError: bad value" in str(stopped.value)
    assert lines(tmp_path / "out") == []


@pytest.mark.parametrize("way", ["exit_1", "sigkill"])
def test_actors_that_die_on_everything_are_not_started_for_ever(way, source, tmp_path):
    stages = [JsonlReader(str(source)), FailsBy(way=way), JsonlWriter(str(tmp_path / "out"))]
    with pytest.raises(StageBroken, match="fails_by") as stopped:
        run(RayActorPoolExecutor, *stages, out=tmp_path / "out")

    assert WAYS[way][0] is not None
    assert re.search(r"died \d+ times and no document has passed it", str(stopped.value))


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_an_input_that_shrinks_is_named_and_the_rest_is_done(executor, source, tmp_path):
    out = tmp_path / "out"
    stages = [JsonlReader(str(source)), ChangesItsInput(str(source / "2.jsonl")), JsonlWriter(str(out))]
    whole = (source / "2.jsonl").read_text().splitlines()
    failure = None
    try:
        run(executor, *stages, out=out)
    except InputsChanged as error:
        failure = error

    if failure is None:  # it was read before anybody cut it
        assert set(whole) <= set(lines(out))
    else:
        assert "2.jsonl" in str(failure)
        assert set(whole).isdisjoint(lines(out))
    others = [line for name in ("0.jsonl", "1.jsonl") for line in (source / name).read_text().splitlines()]
    assert set(others) <= set(lines(out))
