"""`Clusters`: which documents are the same, and which may be similar. Arrays on disk, mapped where they are used."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.deduplication.array_files import has_arrays, write_arrays


@dataclass(frozen=True)
class Clusters:
    """Positions count the documents of the sketches, those of indexes first."""

    doc: NDArray[np.uint64]  # number of the document at each position
    leader: NDArray[np.int32]  # position of the document each one follows; its own if it follows none
    positions: NDArray[np.int32]  # of the candidates, rising
    component: NDArray[np.int64]  # of each candidate
    rank: NDArray[np.int64]  # of each candidate: lower is better, no two are equal; negative for those of an index
    sizes: NDArray[np.int32]  # shingles of each candidate
    counts: NDArray[np.int64]  # documents of indexes, and the most documents in one bucket

    @property
    def num_indexed(self) -> int:
        """How many documents are in indexes and not in the input."""
        return int(self.counts[0])

    @property
    def largest_bucket(self) -> int:
        """How many documents share one key, at most."""
        return int(self.counts[1])

    def save(self, directory: Path) -> None:
        """Write the arrays below a directory, which appears whole or not at all."""
        write_arrays(directory, {own.name: getattr(self, own.name) for own in fields(self)})

    @classmethod
    def are_in(cls, directory: Path) -> bool:
        """Whether they were written here, and are as they were. If not, what there is is removed."""
        return has_arrays(directory, [own.name for own in fields(cls)])

    @classmethod
    def load(cls, directory: str | Path) -> "Clusters":
        """Map the arrays; nothing is read yet."""
        return cls(*(_load(Path(directory) / f"{own.name}.npy") for own in fields(cls)))  # type: ignore[arg-type]

    def at(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the positions of documents. Those of the input are in the order of their numbers."""
        indexed = (numbers & ~np.uint64(1 << 63)).astype(np.int64)
        found = np.searchsorted(self.doc[self.num_indexed :], numbers) + self.num_indexed
        return np.where(numbers >= np.uint64(1 << 63), indexed, found)

    def candidates_in(self, numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return which candidates are documents of a batch, given by their numbers, as positions in `positions`."""
        if not len(numbers):
            return np.zeros(0, np.int64)
        own = self.doc[self.num_indexed :]
        first, end = np.searchsorted(own, [numbers[0], numbers[-1] + np.uint64(1)]) + self.num_indexed
        return np.arange(*np.searchsorted(self.positions, [first, end]))

    def best(self) -> NDArray[np.int32]:
        """Return the best candidate of each candidate's component: what it loses to without verification."""
        order = np.lexsort((self.rank, self.component))
        first = np.concatenate([[True], np.diff(self.component[order]) != 0]) if len(order) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(first)
        best = np.empty(len(order), np.int32)
        best[order] = np.repeat(self.positions[order[starts]], np.diff(np.append(starts, len(order))))
        return best


def _load(path: Path) -> NDArray[np.generic]:
    # An empty array cannot be mapped.
    loaded: NDArray[np.generic] = np.load(path, mmap_mode="r" if path.stat().st_size > 128 else None)
    return loaded
