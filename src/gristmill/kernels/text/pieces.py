"""Paragraphs and lines as different rules cut them: how many there are, and how many are distinct."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import count_in_blocks, find_in_blocks
from gristmill.kernels.text.distinct import SCRATCH_PER_PIECE, count_distinct
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import DOUBLE_NEWLINES, FILLED_LINES, LINES, PARAGRAPHS
from gristmill.kernels.text.layout import PIECE_COLUMNS as COLUMNS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.spaces import last_word_stop, word_start
from gristmill.kernels.text.words_of_bytes import Bytes


@inline
def _next_cut(data: Bytes, start: int, stop: int, kind: int) -> tuple[int, int]:
    """Return where the piece from `start` on ends, and where the next one begins; after `stop` if there is none."""
    end = find_in_blocks(data, start, stop, 0x0A)
    while end < stop:
        after = end + 1
        if kind == DOUBLE_NEWLINES:
            after += after < stop and data[after] == 0x0A
        elif kind != FILLED_LINES:
            while after < stop and data[after] == 0x0A:
                after += 1
        if kind >= LINES or after > end + 1:
            return end, after
        end = find_in_blocks(data, after, stop, 0x0A)
    return stop, stop + 1


@sized(
    **TEXTS,
    scratch=lambda room: max(room, 1),
    counts=lambda documents: documents * COLUMNS,
)
def count_pieces(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    kind: int,
    first: int,
    scratch: NDArray[np.int64],
    room: int,
    counts: NDArray[np.int64],
) -> int:
    """Measure the pieces of documents from `first` on; return the first that `scratch` has no room for, D at the end.

    scratch  [room]    where there is no room, scratch[0] says how much is needed
    counts   [D, 4]    one row per document
    """
    for d in range(first, documents):
        start, stop = starts[d], stops[d]
        needed = SCRATCH_PER_PIECE * (count_in_blocks(data, start, stop, 0x0A) + 2)
        if needed > room:
            scratch[0] = needed
            return d
        if kind == PARAGRAPHS:
            start = word_start(data, start, stop)
            stop = last_word_stop(data, start, stop)
        pieces = 0
        while start <= stop:
            end, after = _next_cut(data, start, stop, kind)
            if kind != FILLED_LINES or word_start(data, start, end) < end:
                scratch[3 * pieces], scratch[3 * pieces + 1] = start, end
                pieces += 1
            start = after
        distinct, distinct_chars, all_chars = count_distinct(data, pieces, scratch)
        row = d * COLUMNS
        counts[row], counts[row + 1], counts[row + 2], counts[row + 3] = pieces, distinct, distinct_chars, all_chars
    return documents
