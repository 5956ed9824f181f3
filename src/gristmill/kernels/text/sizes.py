"""`sized`: how long the arrays of a kernel must be, stated beside the kernel and checked before it begins.

A kernel is given pointers: one with too little room would write over what lies after it, or end the process. So every
array arrives with its length, and compiled code compares it with what is stated here before the kernel touches anything
(see `object_code`). A length is a function of other parameters, by their names; those stated first may be read by later
ones. A size that only the data can tell (the longest text) is found by a loop over the documents, not over their
bytes.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline

F = TypeVar("F", bound=Callable[..., object])
Longs = NDArray[np.int64]


def sized(**least: Callable[..., int]) -> Callable[[F], F]:
    """State the least length of a kernel's arrays: `@sized(counts=lambda documents: documents * COLUMNS)`."""

    def stated(kernel: F) -> F:
        kernel.least_sizes = least  # type: ignore[attr-defined]
        return kernel

    return stated


@inline
def end_of_texts(starts: Longs, stops: Longs, documents: int) -> int:
    """Return where the last byte of any text ends."""
    end = 0
    for d in range(documents):
        if stops[d] > starts[d]:
            end = max(end, stops[d])
    return end


@inline
def longest_text(starts: Longs, stops: Longs, documents: int) -> int:
    """Return the bytes of the longest text."""
    longest = 0
    for d in range(documents):
        longest = max(longest, stops[d] - starts[d])
    return longest


@inline
def bytes_of_texts(starts: Longs, stops: Longs, documents: int) -> int:
    """Return the bytes of all texts."""
    total = 0
    for d in range(documents):
        total += stops[d] - starts[d]
    return total


@inline
def greatest(values: Longs, count: int) -> int:
    """Return the greatest of some numbers, -1 without any."""
    found = -1
    for place in range(count):
        found = max(found, np.int64(values[place]))
    return found


# What kernels that are given texts begin with.
TEXTS: dict[str, Callable[..., int]] = {
    "starts": lambda documents: documents,
    "stops": lambda documents: documents,
    "data": end_of_texts,
}
