"""Importing gristmill is light: no heavy library, and little beside pyarrow, which every run needs.

`pa.array` and its like import pandas where it is installed, for 0.2 s: at the top of a module that is paid by every
process of every run.
"""

import re
import statistics
import subprocess
import sys

import pytest

from gristmill.backends.local.launch import SERVER_MODULE, WORKER_MODULE

MODELS = ("aiohttp", "fasttext", "huggingface_hub", "onnxruntime", "safetensors", "tokenizers", "torch", "transformers")
PAGES = ("cchardet", "fastwarc", "isal", "justext", "lxml", "resiliparse", "trafilatura")
HEAVY = ("llvmlite", "numba", "pandas", "prometheus_client", "ray", "rich", "typer", "fsspec", *MODELS, *PAGES)
REPEATS = 5
LINE = re.compile(r"import time:\s+\d+ \|\s+(\d+) \| (\s*)(\S+)")

SCRIPT = """
import sys
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import BATCH, EmptyTask

class Look(ProcessingStage):
    def setup(self, worker_metadata=None):
        self.loaded = "pyarrow" in sys.modules
    def process(self, task):
        task._metadata["loaded"] = self.loaded
        return task

if __name__ == "__main__":
    done = Pipeline("look", stages=[Look()]).run(LocalExecutor(num_workers=1), initial_tasks=[EmptyTask()])
    print(done[0]._metadata["loaded"])
"""


def import_costs(module: str) -> dict[str, int]:
    """Return microseconds, children included, for each module loaded by importing one in a new interpreter."""
    command = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return {match[3]: int(match[1]) for match in map(LINE.match, report.splitlines()) if match}


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "gristmill",
        "gristmill.pipeline",
        "gristmill.stages.text.io",
        "gristmill.stages.text.filters.heuristic",
        "gristmill.stages.text.classifiers",
        "gristmill.stages.text.embedders",
        WORKER_MODULE,
    ],
)
def test_importing_loads_no_heavy_library(module):
    loaded = {name.partition(".")[0] for name in import_costs(module)}

    assert "gristmill" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "gristmill.pipeline",
        "gristmill.backends.local.run",
        "gristmill.stages.deduplication.exact.workflow",
        WORKER_MODULE,
    ],
)
def test_what_every_run_needs_loads_no_arrow_and_no_event_loop(module):
    assert import_costs(module).keys().isdisjoint({"pyarrow", "numpy", "asyncio", "psutil"})


@pytest.mark.slow
def test_the_fork_server_loads_nothing_of_the_driver():
    """It starts while the driver plans, and all it has loaded every worker has: what runs a plan is not for it."""
    loaded = import_costs(SERVER_MODULE).keys() | import_costs(WORKER_MODULE).keys()

    assert SERVER_MODULE in loaded
    assert not [name for name in loaded if name.startswith(("gristmill.backends", "gristmill.runs"))]
    assert loaded.isdisjoint({"subprocess", "csv", "cloudpickle", "logging", "shutil", "tempfile"})


@pytest.mark.slow
def test_a_module_with_a_stage_and_a_pipeline_does_not_load_what_runs_one():
    """Workers import the module a user's stage is in, which often imports `Pipeline` too: 20 ms in every start."""
    loaded = import_costs("gristmill.pipeline").keys()

    assert "gristmill.pipeline.compile" in loaded
    running = ("gristmill.engine.scheduler", "gristmill.engine.state", "gristmill.runs.directory", "concurrent.futures")
    assert loaded.isdisjoint(running)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["gristmill.backends.local.run", "gristmill.stages.text.io"])
def test_what_is_for_stores_and_damaged_files_is_loaded_where_there_are_some(module):
    storage = {f"gristmill.storage.{name}" for name in ("remote_file_system", "store_errors", "salvage")}

    assert import_costs(module).keys().isdisjoint({*storage, "gristmill.runs.store_lease", "csv"})


@pytest.mark.slow
@pytest.mark.parametrize("batch", ["EmptyTask", "DocumentBatch"])
def test_the_workers_have_arrow_from_the_start_exactly_where_the_program_has(batch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("BATCH", batch))
    printed = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout

    assert printed.split() == [str(batch == "DocumentBatch")]


@pytest.mark.slow
def test_importing_a_pipeline_costs_less_than_thrice_pyarrow():
    # A ratio of medians taken in turns: a busy machine slows both sides alike.
    name = "gristmill.pipeline"
    pairs = [(import_costs(name)[name], import_costs("pyarrow")["pyarrow"]) for _ in range(REPEATS)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))

    assert ours < 3 * theirs


@pytest.mark.slow
def test_a_recipe_loads_only_what_it_names():
    code = "import sys; from gristmill.config.run import create_pipeline_from_yaml; "
    code += "create_pipeline_from_yaml('english-heuristics', input='raw', output='clean'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    assert "gristmill.stages.text.filters.heuristic.string" in loaded
    others = (
        "gristmill.models",
        "gristmill.deduplication",
        "gristmill.stages.synthetic",
        "gristmill.stages.mixing.",
        "gristmill.stages.exchange.aggregate",
        "gristmill.stages.text.decontamination.",
        "gristmill.stages.text.io.reader.parquet",
        "gristmill.stages.text.modifiers.pii",
        "gristmill.stages.text.rules.c4",
    )
    assert not [name for name in loaded if name.startswith(others)]
