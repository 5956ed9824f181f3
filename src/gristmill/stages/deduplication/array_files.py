"""Arrays between two pipelines of a workflow. They appear whole or not at all, and stay when the machine stops.

A pipeline's files are checked by its ledger when it is continued; these have nobody who would, so they are forced to
disk.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.storage.atomic_write import force_file, force_names, whole_file


def write_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write one array, to be read by `np.load`."""
    with whole_file(path, forced=True) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def write_arrays(directory: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays as `<name>.npy` below a directory that is not there yet."""
    temporary = directory.with_name(f".{directory.name}.tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        file = temporary / f"{name}.npy"
        np.save(file, array)
        force_file(str(file))
    force_names(str(temporary))  # a directory that is there has all its arrays
    temporary.rename(directory)
    force_names(str(directory.parent))
