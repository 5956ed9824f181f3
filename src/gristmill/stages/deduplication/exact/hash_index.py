"""Hashes of an index, sorted on disk and looked up by position. They are mapped: a look-up reads a few pages."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.deduplication.array_files import has_arrays, write_arrays

ARRAYS = ("low", "high", "position")


def is_index(directory: Path) -> bool:
    """Whether `write_index` has written one here, and it is as it was. If not, what there is is removed."""
    return has_arrays(directory, ARRAYS)


def write_index(directory: Path, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> None:
    """Write N ≥ 1 hashes; they appear whole or not at all. Positions are those of the arrays given."""
    order = np.lexsort((high, low))
    write_arrays(directory, {"low": low[order], "high": high[order], "position": order.astype(np.int64)})


def find_in_index(directory: str, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return int64[N], the position of each hash in the index, or -1."""
    known_low, known_high, position = (np.load(f"{directory}/{name}.npy", mmap_mode="r") for name in ARRAYS)
    found = np.full(len(low), -1, np.int64)
    place = np.searchsorted(known_low, low)
    candidates = np.flatnonzero((place < len(known_low)) & (known_low[np.minimum(place, len(known_low) - 1)] == low))
    for row in candidates.tolist():
        at = int(place[row])
        # Different texts of the same low half are next to each other.
        while at < len(known_low) and known_low[at] == low[row]:
            if known_high[at] == high[row]:
                found[row] = position[at]
                break
            at += 1
    return found
