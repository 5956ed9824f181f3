"""Kernels come with the package; what does not fit is compiled by the first process that needs it, and kept."""

import os
import subprocess
import sys

import numpy as np
import pytest

from gristmill.errors import ConfigError, EngineBug
from gristmill.stages.compiled_kernel import KERNELS_VARIABLE, CompiledKernel, missing_kernels
from gristmill.storage.byte_cache import CACHE_VARIABLE

SCRIPT = """
import sys
import numpy as np
from gristmill.stages.compiled_kernel import CompiledKernel

parents = np.array([0, 0, 1], np.int32)
CompiledKernel("dedup.union_find", "flatten")(parents, 3)
print(parents.tolist(), "numba" in sys.modules)
"""
FLAT = "[0, 0, 0]"


def flatten_in_a_new_process(cache, kernels="compile"):
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), CACHE_VARIABLE: str(cache)}
    environment = {**os.environ, **paths, KERNELS_VARIABLE: kernels}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_no_process_loads_numba_where_the_code_came_with_the_package(tmp_path):
    assert flatten_in_a_new_process(tmp_path, kernels="") == f"{FLAT} False"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_only_the_first_process_loads_numba(tmp_path):
    assert flatten_in_a_new_process(tmp_path) == f"{FLAT} True"
    assert flatten_in_a_new_process(tmp_path) == f"{FLAT} False"


@pytest.mark.slow
def test_without_a_cache_every_process_compiles(tmp_path):
    (tmp_path / "file").touch()

    assert [flatten_in_a_new_process(tmp_path / "file") for _ in range(2)] == [f"{FLAT} True"] * 2


@pytest.mark.slow
def test_damaged_machine_code_is_compiled_again(tmp_path):
    flatten_in_a_new_process(tmp_path)
    [code] = [path for path in tmp_path.iterdir() if not path.suffix]
    code.write_bytes(code.read_bytes()[:1000])

    assert flatten_in_a_new_process(tmp_path) == f"{FLAT} True"


@pytest.mark.slow
def test_an_array_with_gaps_is_refused():
    every_other = np.zeros(8, np.int64)[::2]
    nothing = np.zeros(1, np.int64)

    with pytest.raises(ValueError, match="expected contiguous arrays"):
        CompiledKernel("text.characters", "count_classes")(
            np.zeros(1, np.uint8), nothing, nothing, 0, nothing, every_other
        )


def test_an_array_of_another_type_is_refused():
    with pytest.raises(EngineBug, match=r"^flatten: expected int32\*, int64; got int64\*, int64$"):
        CompiledKernel("dedup.union_find", "flatten")(np.zeros(3, np.int64), 3)


def test_every_kernel_that_is_imported_came_with_the_package():
    from gristmill.deduplication import clusters  # noqa: F401  # which calls two

    assert missing_kernels() == {}, "`make setup` compiles them"


def test_every_kernel_that_is_named_is_looked_for(monkeypatch, tmp_path):
    CompiledKernel("dedup.union_find", "flatten")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(KERNELS_VARIABLE, "compile")

    assert "dedup.union_find.flatten" in missing_kernels()


def test_a_name_that_is_not_a_target_is_refused(monkeypatch):
    monkeypatch.setenv(KERNELS_VARIABLE, "linux-x86")

    with pytest.raises(ConfigError, match=r"^GRISTMILL_KERNELS: expected one of compile, .*; got 'linux-x86'"):
        CompiledKernel("dedup.union_find", "flatten")(np.zeros(3, np.int32), 3)


def test_a_target_of_another_machine_is_refused(monkeypatch):
    monkeypatch.setattr("gristmill.stages.compiled_kernel.host_targets", lambda: ())
    monkeypatch.setenv(KERNELS_VARIABLE, "compile")

    with pytest.raises(ConfigError, match="expected code that this machine can run"):
        CompiledKernel("dedup.union_find", "join_equal")(np.zeros(3, np.int32), 3)
