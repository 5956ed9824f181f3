"""`ClusterSketches`: from sketches to candidates. It is a stage so that its memory is freed when its worker ends.

Documents with the same folded words are settled here: the best of them leads, the others follow it whatever becomes of
it. The leaders are joined by the keys they share; a component of more than one is a set of candidates. Memory holds
only a few integers per document, and only the keys of one range of one band at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gristmill.deduplication.files_between import (
    column_parts,
    count_rows,
    has_arrays,
    read_column,
    take_numbers,
    write_arrays,
)
from gristmill.deduplication.fork_preparation import prepare_fork
from gristmill.errors import ConfigError
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.tasks import FileGroupTask

# `Clusters`: which documents are the same, and which may be similar. Arrays on disk, mapped where they are used.


@dataclass(frozen=True)
class Clusters:
    """Positions number the documents of the sketches, those of indexes first."""

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
        """Whether the arrays were written here and are unchanged. If not, whatever is there is removed."""
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
        """Return the candidates among a batch's documents, given by number, as places in `positions`."""
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


MAX_DOCUMENTS = 2**31  # positions are 32 bits wide
RANGE_KEYS = 4_000_000  # sorted at a time: 44 bytes each
# Every range reads its band again, so the number of ranges must not grow with the documents. An eighth of a band's
# keys takes less memory than `_leaders` took before.
MOST_RANGES = 8

_join_equal = CompiledKernel("dedup.union_find", "join_equal")
_flatten = CompiledKernel("dedup.union_find", "flatten")


@dataclass(eq=False)
class ClusterSketches(ProcessingStage[FileGroupTask, FileGroupTask]):
    """Write the `Clusters` of sketch files, given as one task, to `directory`. It makes no tasks.

    The first `num_index_files` are those of indexes. With `by_order` the earlier of two documents is the better one.
    """

    may_run_twice: ClassVar[bool] = False

    directory: str
    banding: Banding
    num_index_files: int = 0
    by_order: bool = False
    range_keys: int = RANGE_KEYS
    name: str = field(default="cluster_sketches", kw_only=True)

    def before_fork(self) -> None:
        prepare_fork(folds=False)

    def process(self, task: FileGroupTask) -> None:
        files = task.data
        doc = read_column(files, "doc", np.uint64)
        if len(doc) >= MAX_DOCUMENTS:
            raise ConfigError(f"{self.name}: expected fewer than {MAX_DOCUMENTS:,} documents; got {len(doc):,}")
        num_indexed = count_rows(files[: self.num_index_files])
        doc[:num_indexed] = np.arange(num_indexed, dtype=np.uint64) | np.uint64(1 << 63)
        leader = self._leaders(files, num_indexed)
        size = read_column(files, "size", np.int32)
        is_member = (leader == np.arange(len(doc), dtype=np.int32)) & (size > 0)
        parent = np.arange(len(doc), dtype=np.int32)
        largest = 1
        for keys, members in self._ranges(files, is_member):
            order = np.argsort(keys)
            largest = max(largest, _join_equal(parent, keys[order], members[order], len(order)))
        _flatten(parent, len(parent))
        positions = np.flatnonzero(_is_useful(parent, is_member, num_indexed)).astype(np.int32)
        order = np.lexsort(self._preference(files, num_indexed, positions))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - int((positions < num_indexed).sum())
        component, counts = parent[positions].astype(np.int64), np.array([num_indexed, largest])
        Clusters(doc, leader, positions, component, rank, size[positions], counts).save(Path(self.directory))

    def _ranges(
        self, files: list[str], is_member: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int32]]]:
        """Yield, for each range of each band, the keys in it and the positions of their documents."""
        num_ranges = min(MOST_RANGES, -(-int(is_member.sum()) // self.range_keys))
        bounds = [(2**64 * number) // num_ranges for number in range(num_ranges)] + [2**64]
        for band in range(self.banding.num_bands):
            for low, end in pairwise(bounds):
                keys, members = [], []
                for first, part in column_parts(files, f"band_{band}", np.uint64):
                    own = is_member[first : first + len(part)] & (part >= np.uint64(low)) & (part <= np.uint64(end - 1))
                    keys.append(part[own])
                    members.append((np.flatnonzero(own) + first).astype(np.int32))
                yield np.concatenate(keys), np.concatenate(members)

    def _preference(
        self, files: list[str], num_indexed: int, positions: NDArray[np.int32]
    ) -> tuple[NDArray[np.generic], ...]:
        """Keys that rank documents for `lexsort`, which takes the last first: index, worth, content hash, id, order."""
        later = positions >= num_indexed
        if self.by_order:
            return (later,)  # sorting is stable: the earlier one comes first
        tie, high, low = (take_numbers(files, name, np.uint64, positions) for name in ("tie", "high", "low"))
        return tie, high, low, -take_numbers(files, "worth", np.float64, positions), later

    def _leaders(self, files: list[str], num_indexed: int) -> NDArray[np.int32]:
        """For each document the position of the best one with the same hash; its own if it has no hash."""
        low = read_column(files, "low", np.uint64)
        leader = np.arange(len(low), dtype=np.int32)
        order = np.argsort(low)
        low = low[order]
        twin = (low[1:] == low[:-1]) & (low[1:] != 0)
        shares = np.zeros(len(low), np.bool_)
        shares[1:] |= twin
        shares[:-1] |= twin
        positions = np.sort(order[shares]).astype(np.int32)
        del low, order, twin, shares
        low, high = (take_numbers(files, name, np.uint64, positions) for name in ("low", "high"))
        better = [positions >= num_indexed]
        if not self.by_order:
            worth = take_numbers(files, "worth", np.float64, positions)
            better = [take_numbers(files, "tie", np.uint64, positions), -worth, *better]  # type: ignore[list-item]
        order = np.lexsort((*better, high, low))
        same = (low[order[1:]] == low[order[:-1]]) & (high[order[1:]] == high[order[:-1]])
        starts = np.flatnonzero(np.concatenate([[True], ~same]))[: len(order)]
        leader[positions[order]] = np.repeat(positions[order[starts]], np.diff(np.append(starts, len(order))))
        return leader


def _is_useful(parent: NDArray[np.int32], is_member: NDArray[np.bool_], num_indexed: int) -> NDArray[np.bool_]:
    """Whether each member is in a component of more than one, with at least one document of the input."""
    members = np.bincount(parent[is_member], minlength=len(parent))
    of_input = np.zeros(len(parent), np.bool_)
    of_input[parent[num_indexed:]] = True
    useful: NDArray[np.bool_] = is_member & ((members > 1) & of_input)[parent]
    return useful
