"""Compiling the kernels of deduplication before the first run, in a process of its own.

The compiler takes 250 MB, which would stay with the driver for the whole run and count against its memory limit. What
is compiled is kept on disk by numba; later runs load it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from gristmill.errors import RunFailed
from gristmill.kernels import dedup
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.deduplication.fuzzy.shingling import Shingling
from gristmill.stages.deduplication.fuzzy.verify_candidates import VerifyCandidates

CODE = "from gristmill.workflows.deduplication.compile_kernels import main; main()"
KERNELS = ("minhash.sketch", "shingle_sets.shingle_sets", "union_find.join_equal", "verify.verify")


def compile_kernels() -> None:
    """Compile what is not on disk yet."""
    if all(map(_is_on_disk, KERNELS)):
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RunFailed(f"compiling kernels failed:\n{done.stderr.decode(errors='replace').strip()}")


def _is_on_disk(kernel: str) -> bool:
    """Whether numba's index of a kernel is younger than its source; where it cannot write here, it is never found."""
    module, _, function = kernel.partition(".")
    folder = Path(dedup.__path__[0])
    source = (folder / f"{module}.py").stat().st_mtime
    return any(file.stat().st_mtime > source for file in (folder / "__pycache__").glob(f"{module}.{function}-*.nbi"))


def main() -> None:
    """Run in the new process."""
    from gristmill.kernels.dedup.union_find import flatten, join_equal

    Shingling().compile(Banding(1, 1))
    VerifyCandidates().compile()
    parent = np.arange(2, dtype=np.int32)
    join_equal(parent, np.zeros(2, np.uint64), np.arange(2))
    flatten(parent)
