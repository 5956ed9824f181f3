"""Union-find on an integer array: which texts are connected by shared keys. Four bytes per text.

The root of a set is its least member, so the result does not depend on the order of the unions (Tarjan 1975, with path
halving).
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import greatest, sized


@inline
def _find(parent: NDArray[np.int32], member: int) -> int:
    """Return the least member of the set."""
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return member


@sized(
    keys=lambda num_members: num_members,
    members=lambda num_members: num_members,
    parent=lambda members, num_members: greatest(members, num_members) + 1,
)
def join_equal(
    parent: NDArray[np.int32], keys: NDArray[np.uint64], members: NDArray[np.int32], num_members: int
) -> int:
    """Join members whose keys are equal and next to each other; return the size of the largest such bucket."""
    largest = run = 1
    for i in range(1, num_members):
        if keys[i] != keys[i - 1]:
            run = 1
            continue
        run += 1
        largest = max(largest, run)
        a, b = _find(parent, members[i - 1]), _find(parent, members[i])
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    return largest


@sized(
    parent=lambda num_members: num_members,
)
def flatten(parent: NDArray[np.int32], num_members: int) -> None:
    """Make every member point at its root."""
    for member in range(num_members):
        parent[member] = _find(parent, member)
