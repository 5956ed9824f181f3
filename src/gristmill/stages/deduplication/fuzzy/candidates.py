"""`Candidates`: which documents may have a duplicate, in which component, and who of it is better. Arrays on disk."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Candidates:
    """Three arrays of one length, ordered by `doc`. A lower `rank` is a better document; no two are equal."""

    doc: NDArray[np.uint64]
    component: NDArray[np.int64]
    rank: NDArray[np.int64]

    def save(self, directory: Path) -> None:
        """Write the arrays below a directory, which appears whole or not at all."""
        temporary = directory.with_name(f".{directory.name}.tmp")
        temporary.mkdir(parents=True, exist_ok=True)
        for name in ("doc", "component", "rank"):
            np.save(temporary / f"{name}.npy", getattr(self, name))
        temporary.rename(directory)

    @classmethod
    def load(cls, directory: str | Path) -> "Candidates":
        """Map the arrays; nothing is read yet."""
        doc, component, rank = (_load(Path(directory) / f"{name}.npy") for name in ("doc", "component", "rank"))
        return cls(doc.view(np.uint64), component.view(np.int64), rank.view(np.int64))

    def between(self, numbers: NDArray[np.uint64]) -> "Candidates":
        """Return the candidates among consecutive document numbers."""
        if not len(numbers):
            return Candidates(self.doc[:0], self.component[:0], self.rank[:0])
        first, end = np.searchsorted(self.doc, [numbers[0], numbers[-1] + np.uint64(1)])
        own = slice(int(first), int(end))
        return Candidates(np.array(self.doc[own]), np.array(self.component[own]), np.array(self.rank[own]))

    def __len__(self) -> int:
        return len(self.doc)


def _load(path: Path) -> NDArray[np.generic]:
    # An empty array cannot be mapped.
    loaded: NDArray[np.generic] = np.load(path, mmap_mode="r" if path.stat().st_size > 128 else None)
    return loaded
