"""A kernel is compiled by the first process that calls it; later ones load machine code, without numba."""

import os
import subprocess
import sys

import numpy as np
import pytest

from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.storage.byte_cache import CACHE_VARIABLE

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import pyarrow as pa
from gristmill.stages.text.judging.statistics import measure
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.judging.statistics import NUM_PARAGRAPHS

column = TextColumn.of(pa.chunked_array([["a", "b" + chr(10) * 2 + "c"]]))
print(measure(column, [NUM_PARAGRAPHS])[NUM_PARAGRAPHS].tolist(), "numba" in sys.modules)
"""


def count_in_a_new_process(cache):
    environment = {**os.environ, CACHE_VARIABLE: str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_only_the_first_process_loads_numba(tmp_path):
    assert count_in_a_new_process(tmp_path) == "[1, 2] True"
    assert count_in_a_new_process(tmp_path) == "[1, 2] False"


def test_without_a_cache_every_process_compiles(tmp_path):
    (tmp_path / "file").touch()

    assert [count_in_a_new_process(tmp_path / "file") for _ in range(2)] == ["[1, 2] True"] * 2


def test_damaged_machine_code_is_compiled_again(tmp_path):
    count_in_a_new_process(tmp_path)
    [code] = [path for path in tmp_path.iterdir() if not path.suffix]
    code.write_bytes(code.read_bytes()[:1000])

    assert count_in_a_new_process(tmp_path) == "[1, 2] True"


def test_an_array_with_gaps_is_refused():
    every_other = np.zeros(8, np.int64)[::2]
    nothing = np.zeros(1, np.int64)

    with pytest.raises(ValueError, match="expected contiguous arrays"):
        CompiledKernel("text.characters", "count_classes")(
            np.zeros(1, np.uint8), nothing, nothing, 0, nothing, every_other
        )
