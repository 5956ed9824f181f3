"""Arrays between two pipelines of a workflow. They appear whole or not at all, and stay when the machine stops.

A pipeline's files are checked by its ledger when it is continued. These are in no ledger: they are forced to disk, and
each has its checksum in a file beside it. What is not as it was written is made again, which gives the same numbers;
one wrong bit in it would have other documents removed, and nobody would notice.
"""

import contextlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.storage.atomic_write import checksum_of, force_file, force_names, whole_file

CHECKSUM = ".checksum"  # behind the name of an array


def write_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write one array, to be read by `np.load`."""
    with whole_file(path, forced=True) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def write_sealed_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write one array, to be used by whoever finds it for as long as `is_sealed_array` holds."""
    write_array(path, array)
    with whole_file(_seal_of(path), forced=True) as temporary:
        temporary.write_text(checksum_of(str(path)))


def is_sealed_array(path: Path) -> bool:
    """Whether an array is there as it was written."""
    with contextlib.suppress(OSError):
        return _seal_of(path).read_bytes() == checksum_of(str(path)).encode()
    return False


def write_arrays(directory: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays as `<name>.npy` below a directory that is not there yet."""
    temporary = directory.with_name(f".{directory.name}.tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        file = temporary / f"{name}.npy"
        np.save(file, array)
        _seal_of(file).write_text(checksum_of(str(file)))
        force_file(str(file))
        force_file(str(_seal_of(file)))
    force_names(str(temporary))  # a directory that is there has all its arrays
    temporary.rename(directory)
    force_names(str(directory.parent))


def has_arrays(directory: Path, names: Iterable[str]) -> bool:
    """Whether `write_arrays` has written these here, and all are as they were. If not, what there is is removed."""
    if all(is_sealed_array(directory / f"{name}.npy") for name in names):
        return True
    shutil.rmtree(directory, ignore_errors=True)
    return False


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{CHECKSUM}")
