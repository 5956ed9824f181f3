"""Shapes of lines that web-text rules ask for: bullets, ellipses, end marks, short lines."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import block_at, range_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK, FILLED_COLUMNS, SHAPE_COLUMNS
from gristmill.kernels.text.line_breaks import break_length, find_break
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.spaces import last_word_stop, word_start
from gristmill.kernels.text.words_of_bytes import (
    Bytes,
    count_characters_in,
    count_ones,
    count_trailing_zeros,
    find_byte,
)

_ONE = np.uint64(1)


@inline
def _is_ellipsis(data: Bytes, at: int) -> bool:
    """Whether "..." or "…" are the three bytes here."""
    if data[at] == 0x2E:
        return data[at + 1] == 0x2E and data[at + 2] == 0x2E
    return data[at] == 0xE2 and data[at + 1] == 0x80 and data[at + 2] == 0xA6


@inline
def _count_marks(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return number signs, and ellipses: "..." without overlaps, and "…"."""
    signs = ellipses = run = 0
    expected = start  # where a full stop would continue the run
    for position in range(start, stop, BLOCK):
        block = block_at(position, stop)
        signs += count_ones(range_bits(data, block, 0x23, 1))
        found = range_bits(data, block, 0x2E, 1) | range_bits(data, block, 0xE2, 1)
        while found:
            at = position + count_trailing_zeros(found)
            found &= found - _ONE
            if data[at] == 0xE2:
                ellipses += _is_ellipsis(data, at)
                continue
            run = run + 1 if at == expected else 1
            expected = at + 1
            if run == 3:
                ellipses, run = ellipses + 1, 0
    return signs, ellipses


@sized(
    **TEXTS,
    counts=lambda documents: documents * SHAPE_COLUMNS,
)
def count_line_shapes(
    data: Bytes, starts: NDArray[np.int64], stops: NDArray[np.int64], documents: int, counts: NDArray[np.int64]
) -> None:
    """Count marks, and lines of `str.splitlines` by how they begin and end, white space apart.

    counts  [D, 6]  one row per document; a bullet is • or -, an ellipsis ... or …
    """
    for d in range(documents):
        start, stop = starts[d], stops[d]
        row = d * SHAPE_COLUMNS
        counts[row] = count_characters_in(data, start, stop)
        counts[row + 1], counts[row + 2] = _count_marks(data, start, stop)
        lines = bullets = trailing = 0
        while start < stop:
            end = find_break(data, start, stop)
            lines += 1
            first = word_start(data, start, end)
            if first < end:
                last = last_word_stop(data, first, end)
                is_dot = data[first] == 0xE2 and data[first + 1] == 0x80 and data[first + 2] == 0xA2
                bullets += is_dot or data[first] == 0x2D
                trailing += last - 3 >= first and _is_ellipsis(data, last - 3)
            start = end + break_length(data, end, stop) if end < stop else stop
        counts[row + 3], counts[row + 4], counts[row + 5] = lines, bullets, trailing


@inline
def _is_end_mark(data: Bytes, start: int, end: int, marks: NDArray[np.int64], num_marks: int) -> bool:
    """Whether the last character is one of the marks, which are in order; as a number its bytes, the first highest."""
    character = np.int64(data[end - 1])
    at, shift = end - 1, 8
    while data[at] & 0xC0 == 0x80 and at > start:
        at -= 1
        character |= np.int64(data[at]) << shift
        shift += 8
    low, high = 0, num_marks
    while low < high:
        middle = (low + high) >> 1
        if marks[middle] < character:
            low = middle + 1
        else:
            high = middle
    return low < num_marks and marks[low] == character


@sized(
    **TEXTS,
    marks=lambda num_marks: num_marks,
    counts=lambda documents: documents * FILLED_COLUMNS,
)
def count_filled_lines(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    short: int,
    marks: NDArray[np.int64],
    num_marks: int,
    counts: NDArray[np.int64],
) -> None:
    """Count lines between newlines that are not blank, with a mark at the end, and of at most `short` characters.

    marks   [num_marks]  the bytes of each as one number, in order
    counts  [D, 4]       one row per document
    """
    for d in range(documents):
        start, stop = starts[d], stops[d]
        lines = ended = few = newlines = 0
        while start <= stop:
            end = find_byte(data, start, stop, 0x0A)
            newlines += end < stop
            if word_start(data, start, end) < end:
                lines += 1
                ended += _is_end_mark(data, start, end, marks, num_marks)
                few += count_characters_in(data, start, end) <= short
            start = end + 1
        row = d * FILLED_COLUMNS
        counts[row], counts[row + 1], counts[row + 2], counts[row + 3] = lines, ended, few, newlines
