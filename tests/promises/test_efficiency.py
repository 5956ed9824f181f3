"""A real run says where its time went and what it measured, and keeps both."""

import json
import time

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

NAP_S = 0.05


class Doze(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Sleeps, and says how long that took: on a busy machine longer than it meant to."""

    name = "nap"
    fusible = False

    def process(self, task):
        began = time.perf_counter()
        time.sleep(NAP_S)
        task._metadata[self.name] = time.perf_counter() - began
        return task


def tasks(number):
    return [DocumentBatch("nap", pa.table({"text": [f"document {i}"]})) for i in range(number)]


@pytest.mark.slow
def test_the_shares_of_a_real_run_add_up_and_its_bound_holds():
    stages = [Doze(), Doze().with_(name="doze", resources=Resources(cpus=0, gpus=0.5))]
    result = Pipeline("naps", stages=stages).run(LocalExecutor(num_workers=2, gpus=1), initial_tasks=tasks(40))

    found = result.efficiency
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert 40 * NAP_S / 2 <= found.bound_s <= found.makespan_s <= result.wall_s
    slept_s = max(sum(task._metadata[name] for task in result) for name in ("nap", "doze"))
    assert slept_s / (2 * found.makespan_s) <= found.shares["useful"] < 1


@pytest.mark.slow
def test_a_run_keeps_what_it_measured(tmp_path):
    stages = [Doze().with_(num_workers=2), JsonlWriter(str(tmp_path))]
    result = Pipeline("naps", stages=stages).run(LocalExecutor(num_workers=2), initial_tasks=tasks(20))
    report = json.loads((tmp_path / ".gristmill" / "report.json").read_text())
    measured = json.loads((tmp_path / ".gristmill" / "measured.json").read_text())

    assert report["efficiency"] == result.efficiency.to_json()
    nap = measured["groups"][0]
    assert nap["name"] == "nap"
    assert nap["tasks"] == 20
    assert NAP_S <= nap["service_s"] <= 2 * measured["makespan_s"] / 20
    assert nap["fan_out"] == 1.0
    assert nap["num_workers"] == 2
