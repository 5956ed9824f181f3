"""`gristmill simulate` answers on the command line."""

import json
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
SPEC = "items: 100\nnodes: {cpus: 4}\nstages:\n  - {name: a, service_s: 2}\n  - {name: b, service_s: 2}\n"


def run(*arguments):
    return subprocess.run([*GRISTMILL, "simulate", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_prints_the_result_in_words_and_as_json(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    assert "100 items in" in run(str(spec)).stdout
    document = json.loads(run(str(spec), "--json").stdout)
    assert document["bound_s"] == 100.0
    assert document["of_bound"] > 0.8


@pytest.mark.slow
def test_mistakes_are_user_mistakes(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("service_s", "service"))
    done = run(str(spec))

    assert done.returncode == 2
    assert "did you mean 'service_s'" in done.stderr
    assert run(str(tmp_path / "none.yaml")).returncode == 2


class Nap(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "nap"
    fusible = False
    resources = Resources(cpus=0, gpus=1)

    def process(self, task):
        time.sleep(0.05)
        return task


def take_naps(directory):
    tasks = [DocumentBatch("nap", pa.table({"text": [f"document {i}"]})) for i in range(60)]
    stages = [Nap(), JsonlWriter(str(directory))]
    Pipeline("naps", stages=stages).run(LocalExecutor(num_workers=1, gpus=1), initial_tasks=tasks)
    return directory


@pytest.mark.slow
def test_a_finished_run_is_simulated_as_it_was(tmp_path):
    """15 %, as docs/guide/scheduling.md says of runs of seconds. Of three the closest counts: machines are busy."""
    runs = (json.loads(run(str(take_naps(tmp_path / name)), "--json").stdout) for name in "abc")

    assert any(found["makespan_s"] == pytest.approx(found["as_it_was"]["makespan_s"], rel=0.15) for found in runs)


@pytest.mark.slow
def test_a_finished_run_is_simulated_on_more_gpus(tmp_path):
    file = take_naps(tmp_path) / ".gristmill" / "measured.json"
    measured = json.loads(file.read_text())
    for group, service_s in zip(measured["groups"], (0.05, 0.001), strict=True):
        group.update(service_s=service_s, sigma=0.0, setup_s=0.1, dispatch_s=0.0)
    file.write_text(json.dumps(measured))
    found = json.loads(run(str(tmp_path), "--json").stdout)
    more = json.loads(run(str(tmp_path), "--what-if", "gpus=3", "--what-if", "items=10x", "--json").stdout)

    assert more["peak_workers"]["nap"] == 3
    assert more["items_per_s"] > 2.5 * found["items_per_s"]
    assert "times as fast" in run(str(tmp_path), "--what-if", "memory=2x").stdout


@pytest.mark.slow
def test_what_if_is_for_runs_only(tmp_path):
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)

    assert "expected the directory of a run" in run(str(spec), "--what-if", "gpus=2").stderr
    assert "with measured.json" in run(str(tmp_path)).stderr
