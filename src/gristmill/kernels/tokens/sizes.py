"""How long the arrays of kernels that are given tokens must be, beside `kernels.text.sizes`."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.tokens.layout import ROOM_BEHIND

# What they begin with: the texts without white space, and where tokens are in them.
TOKENS: dict[str, Callable[..., int]] = {
    "firsts": lambda documents: documents + 1,
    "solid": lambda firsts, documents: firsts[documents] + ROOM_BEHIND,
    "offsets": lambda documents: documents + 1,
    "places": lambda offsets, documents: offsets[documents],
}


@inline
def room_for_tokens(wanted: NDArray[np.uint8], offsets: NDArray[np.int64], documents: int) -> int:
    """Return the room that the longest wanted text needs: its tokens and eight more."""
    most = 0
    for d in range(documents):
        if wanted[d]:
            most = max(most, offsets[d + 1] - offsets[d] - 1)
    return most + 8
