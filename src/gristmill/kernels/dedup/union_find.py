"""Union-find on an integer array: which texts hang together by shared keys. Four bytes a text.

The root of a set is its least member, so the result does not depend on the order of the unions (Tarjan 1975, with path
halving).
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.compiled import compiled


@compiled
def find(parent: NDArray[np.int32], member: int) -> int:
    """Return the least member of the set."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@compiled
def join_equal(parent: NDArray[np.int32], keys: NDArray[np.uint64], order: NDArray[np.int64]) -> int:
    """Join all members with equal keys, where `order` sorts the keys; return the size of the largest such bucket."""
    largest = run = 1
    for i in range(1, len(order)):
        if keys[order[i]] != keys[order[i - 1]]:
            run = 1
            continue
        run += 1
        largest = max(largest, run)
        a, b = find(parent, order[i - 1]), find(parent, order[i])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    return largest


@compiled
def flatten(parent: NDArray[np.int32]) -> None:
    """Make every member point at its root."""
    for member in range(len(parent)):
        parent[member] = find(parent, member)
