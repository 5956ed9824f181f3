"""Deduplication loads neither the compiler, once its kernels are compiled, nor pandas."""

import subprocess
import sys

import pytest
from tests.jsonl_files import write_documents

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
from tests.fault.deduplicate import run
for kind in ("exact", "fuzzy"):
    run(kind, sys.argv[1], f"{sys.argv[2]}/{kind}", workers=0)
print(sorted({"numba", "pandas", "scipy"}.intersection(sys.modules)))
"""


def test_a_second_run_on_a_machine_loads_no_heavy_library(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": str(i), "text": f"a text {i % 3}"} for i in range(9)])

    def loaded(output):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "in"), str(tmp_path / output)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    loaded("first")
    assert loaded("second") == "[]"
