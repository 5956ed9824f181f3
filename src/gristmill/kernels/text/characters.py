"""Counts of characters by class."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.layout import CHARACTER_COLUMNS as COLUMNS
from gristmill.kernels.text.layout import CLASS_BITS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import Bytes

_MASK = (1 << CLASS_BITS) - 1
_RUN = _MASK  # additions before a counter could overflow


@sized(
    **TEXTS,
    classes=lambda: 256,
    counts=lambda documents: documents * COLUMNS,
)
def count_classes(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    classes: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Count the characters of each class, in one pass over the bytes.

    classes  [256]    for each byte, the sum of `1 << (CLASS_BITS * column)` over the columns it counts in
    counts   [D, 5]   one row per document
    """
    for d in range(documents):
        start, stop = starts[d], stops[d]
        for k in range(COLUMNS):
            counts[d * COLUMNS + k] = 0
        position = start
        while position < stop:
            end = min(stop, position + _RUN)
            total = 0
            for i in range(position, end):
                total += classes[data[i]]
            for k in range(COLUMNS):
                counts[d * COLUMNS + k] += (total >> (CLASS_BITS * k)) & _MASK
            position = end
        if counts[d * COLUMNS] != stop - start:  # not ASCII: ⟨ and ⟩ are brackets too
            angles = 0
            for i in range(start, stop - 2):
                angles += (data[i] == 0xE2) & (data[i + 1] == 0x9F) & ((data[i + 2] | 1) == 0xA9)
            counts[d * COLUMNS + 4] += angles


@sized(
    **TEXTS,
    counts=lambda documents: documents,
)
def count_characters(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    counts: NDArray[np.int64],
) -> None:
    """Count the characters of each text, and nothing else.

    counts  [D]
    """
    for d in range(documents):
        count = 0
        for i in range(starts[d], stops[d]):
            count += data[i] & 0xC0 != 0x80
        counts[d] = count
