"""Lines: how they begin and end, and how many are distinct. A line is what lies between newlines and is not blank."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import count_in_blocks, find_in_blocks
from gristmill.kernels.text.distinct import SCRATCH_PER_PIECE, count_distinct
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import LINE_COLUMNS as COLUMNS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.spaces import last_word_stop, word_start
from gristmill.kernels.text.words_of_bytes import Bytes


@inline
def _starts_with_bullet(data: Bytes, start: int, stop: int) -> bool:
    """• ‣ ⁃ ⁌ ⁍ ∙ ○ ● ◘ ◦ ⦾ ⦿, all of three bytes that begin with E2."""
    if data[start] != 0xE2 or start + 3 > stop:
        return False
    second, third = data[start + 1], data[start + 2]
    if second == 0x80:
        return third in (0xA2, 0xA3)
    if second == 0x81:
        return third in (0x83, 0x8C, 0x8D)
    if second == 0x97:
        return third in (0x8B, 0x8F, 0x98, 0xA6)
    return (second == 0x88 and third == 0x99) or (second == 0xA6 and third in (0xBE, 0xBF))


@inline
def _ends_with(data: Bytes, start: int, stop: int, mark: tuple[int, ...]) -> bool:
    if stop - start < len(mark):
        return False
    for k in range(len(mark)):
        byte = np.int64(data[stop - len(mark) + k])
        if (byte | 0x20 if 0x41 <= byte <= 0x5A else byte) != mark[k]:
            return False
    return True


_DOTS = tuple(b"...")
_READ_MORE = tuple(b"read more")
_READ_MORE_DOTS = tuple(b"read more..")


@inline
def _ends_with_ellipsis(data: Bytes, start: int, stop: int) -> bool:
    """... [...] … (...) […] -» and "read more", with or without two dots, in any case."""
    last = data[stop - 1]
    if last == 0xA6 or last == 0xBB:  # … and -»
        if stop - start < 3:
            return False
        before, second = data[stop - 3], data[stop - 2]
        return (last == 0xA6 and before == 0xE2 and second == 0x80) or (
            last == 0xBB and before == 0x2D and second == 0xC2
        )
    if last in (0x65, 0x45):
        return _ends_with(data, start, stop, _READ_MORE)
    if last == 0x2E:
        return _ends_with(data, start, stop, _DOTS) or _ends_with(data, start, stop, _READ_MORE_DOTS)
    if last in (0x5D, 0x29):
        opening = 0x5B if last == 0x5D else 0x28
        if stop - start < 5 or data[stop - 5] != opening:
            return False
        if data[stop - 4] == 0x2E:
            return _ends_with(data, start, stop - 1, _DOTS)
        return last == 0x5D and data[stop - 4] == 0xE2 and data[stop - 3] == 0x80 and data[stop - 2] == 0xA6
    return False


@sized(
    **TEXTS,
    scratch=lambda room: max(room, 1),
    counts=lambda documents: documents * COLUMNS,
)
def count_lines(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    first: int,
    scratch: NDArray[np.int64],
    room: int,
    counts: NDArray[np.int64],
) -> int:
    """Measure the lines of documents from `first` on; return the first that `scratch` has no room for, D at the end.

    scratch  [room]    where there is no room, scratch[0] says how much is needed
    counts   [D, 7]    one row per document
    """
    for d in range(first, documents):
        start, stop = starts[d], stops[d]
        needed = SCRATCH_PER_PIECE * (count_in_blocks(data, start, stop, 0x0A) + 2)
        if needed > room:
            scratch[0] = needed
            return d
        lines = bullets = no_end_mark = ellipses = 0
        while start < stop:
            end = find_in_blocks(data, start, stop, 0x0A)
            head = word_start(data, start, end)
            if head < end:
                tail = last_word_stop(data, head, end)
                scratch[3 * lines], scratch[3 * lines + 1] = start, end
                lines += 1
                bullets += _starts_with_bullet(data, head, tail)
                no_end_mark += data[tail - 1] not in (0x2E, 0x3F, 0x21, 0x22, 0x27)
                ellipses += _ends_with_ellipsis(data, head, tail)
            start = end + 1
        distinct, distinct_chars, all_chars = count_distinct(data, lines, scratch)
        row = d * COLUMNS
        counts[row], counts[row + 1], counts[row + 2], counts[row + 3] = lines, bullets, no_end_mark, ellipses
        counts[row + 4], counts[row + 5], counts[row + 6] = distinct, distinct_chars, all_chars
    return documents
