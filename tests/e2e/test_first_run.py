"""The first run on a machine that nothing was compiled for: it says so, nobody is blamed, and it happens once."""

import os
import subprocess
import sys

import pytest

from gristmill.stages.compiled_kernel import _COUNTING, KERNELS_VARIABLE
from gristmill.storage.byte_cache import CACHE_VARIABLE

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SCRIPT = """
import sys
import numpy as np
import pyarrow as pa
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.tasks import DocumentBatch

class Flatten(ProcessingStage):
    def process(self, task):
        parents = np.array([0, 0, 1], np.int32)
        CompiledKernel("dedup.union_find", "flatten")(parents, 3)
        loads_numba = "numba" in sys.modules
        return DocumentBatch("found", pa.table({"found": [f"{parents.tolist()} {loads_numba}"]}))

if __name__ == "__main__":
    import gristmill.deduplication.clusters  # which calls the kernel, as a stage would
    tasks = [DocumentBatch("given", pa.table({"text": [str(n)]})) for n in range(4)]
    result = Pipeline("first", stages=[Flatten()]).run(LocalExecutor(num_workers=2), initial_tasks=tasks)
    print("found", [text for task in result for text in task.to_pyarrow()["found"].to_pylist()], result.quarantined)
    print("told", result.messages)
"""


def run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, CACHE_VARIABLE: str(tmp_path / "cache"), KERNELS_VARIABLE: "compile"}
    done = subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True, text=True)
    found, told = (line for line in done.stdout.splitlines() if line.startswith(("found", "told")))
    return found, told, done.stderr


def test_what_is_missing_is_compiled_before_any_document_and_only_once(tmp_path):
    found, told, shown = run(tmp_path)

    assert found == f"found {['[0, 0, 0] False'] * 4} 0"
    said = f"compiling {2 + len(_COUNTING)} kernels once for this machine, about "
    assert said in told
    assert said in shown
    found, told, _ = run(tmp_path)
    assert (found, told) == (f"found {['[0, 0, 0] False'] * 4} 0", "told []")
