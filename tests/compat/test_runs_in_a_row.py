"""Runs in a row in one program, on one executor after another, do not disturb each other.

`make test` does a few; `GRISTMILL_RUNS=100` in `make test-nightly` does a hundred.
"""

import os

import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.backends.xenna import XennaExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("ray_cluster"),
]
ORDER = (RayDataExecutor, XennaExecutor, RayDataExecutor, RayActorPoolExecutor, LocalExecutor, RayDataExecutor)
RUNS = int(os.environ.get("GRISTMILL_RUNS", len(ORDER)))


@pytest.mark.timeout(120 * RUNS)
def test_every_run_of_a_program_gives_the_same(tmp_path):
    raw = tmp_path / "raw"
    for part in range(3):
        write_documents(raw / f"{part}.jsonl", [{"id": f"{part}-{n}", "text": "word"} for n in range(10)])
    for number in range(RUNS):
        out = tmp_path / f"out-{number}"
        stages = [JsonlReader(str(raw), files_per_partition=1), JsonlWriter(str(out))]
        result = Pipeline("again", stages=stages).run(ORDER[number % len(ORDER)]())

        assert (result.read, result.written) == (30, 30)
        for path in raw.iterdir():
            assert (out / path.name).read_bytes() == path.read_bytes()
