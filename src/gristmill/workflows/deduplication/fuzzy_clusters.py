"""From sketches to candidates: which documents are the same, and which may be similar. One band in memory at a time.

Documents with the same folded words are settled here: the best of them leads, the others follow it whatever becomes of
it. The leaders are joined by the keys they share; a component of more than one is a set of candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.deduplication.fuzzy.candidates import Candidates
from gristmill.workflows.deduplication.row_files import read_column

MAX_DOCUMENTS = 2**31  # positions are 32 bits wide


@dataclass(frozen=True)
class Clusters:
    """Positions count the documents of the sketches, those of indexes first."""

    doc: NDArray[np.uint64]  # number of the document at each position
    leader: NDArray[np.int32]  # position of the document each one follows; its own if it follows none
    positions: NDArray[np.int32]  # of the candidates, rising
    component: NDArray[np.int64]  # of each candidate
    rank: NDArray[np.int64]  # of each candidate; negative for documents of an index
    sizes: NDArray[np.int32]  # shingles of each candidate
    num_indexed: int
    largest_bucket: int

    def candidates(self) -> Candidates:
        """The candidates of the input."""
        own = self.positions >= self.num_indexed
        return Candidates(self.doc[self.positions[own]], self.component[own], self.rank[own])

    def best(self) -> NDArray[np.int32]:
        """The position of the best candidate of each candidate's component: what it loses to without verification."""
        order = np.lexsort((self.rank, self.component))
        first = np.concatenate([[True], np.diff(self.component[order]) != 0]) if len(order) else np.zeros(0, np.bool_)
        starts = np.flatnonzero(first)
        best = np.empty(len(order), np.int32)
        best[order] = np.repeat(self.positions[order[starts]], np.diff(np.append(starts, len(order))))
        return best


def cluster(files: Sequence[str], index_files: Sequence[str], banding: Banding, *, by_order: bool) -> Clusters:
    """Group the documents of sketch files; with `by_order` the earlier of two is the better."""
    from gristmill.kernels.dedup.union_find import flatten, join_equal

    everything = [*index_files, *files]
    num_indexed = len(read_column(index_files, "doc", np.uint64))
    doc = np.array(read_column(everything, "doc", np.uint64))  # a copy: what is read may be mapped
    if len(doc) >= MAX_DOCUMENTS:
        raise ConfigError(f"fuzzy deduplication: expected fewer than {MAX_DOCUMENTS:,} documents; got {len(doc):,}")
    doc[:num_indexed] = np.arange(num_indexed, dtype=np.uint64) | np.uint64(1 << 63)
    later = np.arange(len(doc)) >= num_indexed
    leader = _leaders(everything, later, by_order=by_order)
    size = read_column(everything, "size", np.int32)
    members = np.flatnonzero((leader == np.arange(len(doc), dtype=np.int32)) & (size > 0)).astype(np.int32)
    parent = np.arange(len(members), dtype=np.int32)
    largest = 1
    for band in range(banding.num_bands):
        keys = read_column(everything, f"band_{band}", np.uint64)[members]
        largest = max(largest, int(join_equal(parent, keys, np.argsort(keys))))
    flatten(parent)
    together = _useful(parent, later[members])
    positions, component = members[together], parent[together].astype(np.int64)
    order = np.lexsort(_preference(everything, later, positions, by_order=by_order))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - int((~later[positions]).sum())
    return Clusters(doc, leader, positions, component, rank, size[positions], num_indexed, largest)


def _preference(
    files: Sequence[str], later: NDArray[np.bool_], positions: NDArray[np.int32], *, by_order: bool
) -> tuple[NDArray[np.generic], ...]:
    """What decides who is better, for `lexsort`: most important last, so index, worth, content hash, id, order."""
    if by_order:
        return (later[positions],)  # sorting is stable: the earlier one comes first
    tie, high, low = (read_column(files, name, np.uint64)[positions] for name in ("tie", "high", "low"))
    return tie, high, low, -read_column(files, "worth", np.float64)[positions], later[positions]


def _leaders(files: Sequence[str], later: NDArray[np.bool_], *, by_order: bool) -> NDArray[np.int32]:
    """The position of the best document with the same hash; its own for a document without one."""
    low, high = (read_column(files, name, np.uint64) for name in ("low", "high"))
    if by_order:
        order = np.lexsort((later, high, low))
    else:
        worth = read_column(files, "worth", np.float64)
        order = np.lexsort((read_column(files, "tie", np.uint64), -worth, later, high, low))
    leader = np.arange(len(low), dtype=np.int32)
    if not len(order):
        return leader
    same = (low[order[1:]] == low[order[:-1]]) & (high[order[1:]] == high[order[:-1]]) & (low[order[1:]] != 0)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    leader[order] = np.repeat(order[starts], np.diff(np.append(starts, len(order))))
    return leader


def _useful(parent: NDArray[np.int32], later: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each member is in a component of more than one, with at least one document of the input."""
    sizes = np.bincount(parent, minlength=len(parent))
    of_input = np.bincount(parent, weights=later, minlength=len(parent))
    useful: NDArray[np.bool_] = ((sizes > 1) & (of_input > 0))[parent]
    return useful
