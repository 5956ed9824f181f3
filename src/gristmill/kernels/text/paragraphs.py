"""Paragraphs: how many there are and how many are distinct. A paragraph is what `text.split("\\n\\n")` returns."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.distinct import SCRATCH_PER_PIECE, count_byte, count_distinct
from gristmill.kernels.text.words_of_bytes import Bytes, find_byte

COLUMNS = 4  # paragraphs, distinct, characters in distinct, characters in all


def count_paragraphs(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    first: int,
    scratch: NDArray[np.int64],
    room: int,
    counts: NDArray[np.int64],
) -> int:
    """Measure the paragraphs of documents from `first` on; return the first that `scratch` has no room for.

    scratch  [room]    where there is no room, scratch[0] says how much is needed
    counts   [D, 4]    one row per document
    """
    for d in range(first, documents):
        start, stop = starts[d], stops[d]
        needed = SCRATCH_PER_PIECE * (count_byte(data, start, stop, 0x0A) // 2 + 2)
        if needed > room:
            scratch[0] = needed
            return d
        pieces = 0
        position = start
        while True:
            end = find_byte(data, position, stop, 0x0A)
            while end + 1 < stop and data[end + 1] != 0x0A:
                end = find_byte(data, end + 1, stop, 0x0A)
            if end + 1 >= stop:
                break
            scratch[3 * pieces], scratch[3 * pieces + 1] = position, end
            pieces += 1
            position = end + 2
        scratch[3 * pieces], scratch[3 * pieces + 1] = position, stop
        pieces += 1
        distinct, distinct_chars, all_chars = count_distinct(data, pieces, scratch)
        row = d * COLUMNS
        counts[row], counts[row + 1], counts[row + 2], counts[row + 3] = pieces, distinct, distinct_chars, all_chars
    return documents
