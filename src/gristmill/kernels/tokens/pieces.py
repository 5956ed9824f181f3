"""Lines and paragraphs: how many there are, how many repeat an earlier one, and how they begin and end.

Pieces are compared by 64-bit hashes of their bytes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.affixes import hash_span, point_at, start_before, width_at
from gristmill.kernels.tokens.code_points import LINE_END, SPACE, class_table
from gristmill.kernels.tokens.english_tables import SALT
from gristmill.kernels.tokens.jit import jit

PARAGRAPHS, LINES, FILLED_LINES = range(3)  # how a text is cut, see `repeated_pieces`

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]


class Repeats(NamedTuple):
    """Of each text: pieces, those that repeat an earlier one, and the characters of these. int64[D]."""

    pieces: Longs
    repeats: Longs
    chars: Longs


class LineShapes(NamedTuple):
    """Of each text. Lines are those of `str.splitlines`. int64[D]."""

    chars: Longs  # all characters of the text
    hashes: Longs  # number signs
    ellipses: Longs  # "..." without overlaps, and "…"
    lines: Longs
    bullets: Longs  # lines that begin, white space apart, with • or -
    trailing: Longs  # lines that end, white space apart, with ... or …


class FilledShapes(NamedTuple):
    """Of each text. Lines are those between newlines that are not blank. int64[D]."""

    lines: Longs
    ended: Longs  # whose last character is a mark that ends a line
    short: Longs  # of at most so many characters
    newlines: Longs


def repeated_pieces(data: Bytes, offsets: Longs, kind: int) -> Repeats:
    """Count repeated pieces.

    PARAGRAPHS     the stripped text, cut at two or more newlines
    LINES          cut at one or more newlines; a newline at an end makes an empty line there
    FILLED_LINES   cut at newlines, without blank ones
    """
    return Repeats(*_repeats(data, offsets, kind, class_table(), SALT).T)


def line_shapes(data: Bytes, offsets: Longs) -> LineShapes:
    """Count characters and lines of certain shapes."""
    return LineShapes(*_shapes(data, offsets, class_table()).T)


def filled_shapes(data: Bytes, offsets: Longs, *, short_length: int) -> FilledShapes:
    """Count the lines that are not blank."""
    return FilledShapes(*_filled(data, offsets, short_length, class_table()).T)


@jit
def skip_space(data: Bytes, low: int, high: int, classes: NDArray[np.uint32]) -> int:
    """Where the first character that is no white space starts."""
    while low < high and classes[point_at(data, low)] & SPACE:
        low += width_at(data, low)
    return low


@jit
def skip_space_back(data: Bytes, low: int, high: int, classes: NDArray[np.uint32]) -> int:
    """Where the last character that is no white space ends."""
    while high > low:
        last = start_before(data, high)
        if not classes[point_at(data, last)] & SPACE:
            break
        high = last
    return high


@jit
def count_chars(data: Bytes, low: int, high: int) -> int:
    """Characters in bytes [low, high)."""
    count = 0
    for at in range(low, high):
        count += (data[at] & 0xC0) != 0x80
    return count


@jit
def _repeats(
    data: Bytes, offsets: Longs, kind: int, classes: NDArray[np.uint32], salt: NDArray[np.uint64]
) -> NDArray[np.int64]:
    found = np.zeros((len(offsets) - 1, 3), np.int64)
    keys = np.empty(64, np.uint64)
    for text in range(len(offsets) - 1):
        low, high = offsets[text], offsets[text + 1]
        newlines = 0
        for at in range(low, high):
            newlines += data[at] == 10
        size = 64
        while size < 2 * (newlines + 1):
            size *= 2
        if size > len(keys):
            keys = np.empty(size, np.uint64)
        keys[:size] = 0
        if kind == PARAGRAPHS:
            low = skip_space(data, low, high, classes)
            high = skip_space_back(data, low, high, classes)
        start = low
        while start <= high:
            end, after = _piece_end(data, start, high, kind)
            if kind != FILLED_LINES or skip_space(data, start, end, classes) < end:
                found[text, 0] += 1
                if _is_known(hash_span(data, start, end, salt), keys, size):
                    found[text, 1] += 1
                    found[text, 2] += count_chars(data, start, end)
            start = after
    return found


@jit
def _piece_end(data: Bytes, start: int, high: int, kind: int) -> tuple[int, int]:
    """Where the piece from `start` on ends, and where the next one starts; past the end if there is none."""
    end = start
    while end < high:
        if data[end] == 10:
            after = end + 1
            while kind != FILLED_LINES and after < high and data[after] == 10:
                after += 1
            if kind != PARAGRAPHS or after > end + 1:
                return end, after
            end = after
        else:
            end += 1
    return high, high + 1


@jit
def _is_known(key: np.uint64, keys: NDArray[np.uint64], size: int) -> bool:
    """Whether a key is in the table of that many slots; it is afterwards."""
    mask = np.uint64(size - 1)
    slot = (key >> np.uint64(20)) & mask
    while keys[slot]:
        if keys[slot] == key:
            return True
        slot = (slot + np.uint64(1)) & mask
    keys[slot] = key
    return False


@jit
def line_end(data: Bytes, start: int, high: int) -> tuple[int, int]:
    """Where the line from `start` on ends, as `str.splitlines` has it, and where the next one starts."""
    end = start
    while end < high:
        byte = data[end]
        if byte < 32:
            if 10 <= byte <= 13 or 28 <= byte <= 30:
                pair = byte == 13 and end + 1 < high and data[end + 1] == 10
                return end, end + (2 if pair else 1)
        elif byte == 0xC2 and data[end + 1] == 0x85:
            return end, end + 2
        elif byte == 0xE2 and data[end + 1] == 0x80 and data[end + 2] & 0xFE == 0xA8:
            return end, end + 3
        end += 1
    return high, high


@jit
def _is_ellipsis(data: Bytes, at: int, high: int) -> bool:
    """Whether "..." or "…" starts here."""
    if at + 3 > high:
        return False
    if data[at] == 46:
        return data[at + 1] == 46 and data[at + 2] == 46
    return data[at] == 0xE2 and data[at + 1] == 0x80 and data[at + 2] == 0xA6


@jit
def _shapes(data: Bytes, offsets: Longs, classes: NDArray[np.uint32]) -> NDArray[np.int64]:
    found = np.zeros((len(offsets) - 1, 6), np.int64)
    for text in range(len(offsets) - 1):
        low, high = offsets[text], offsets[text + 1]
        at = low
        while at < high:
            found[text, 0] += (data[at] & 0xC0) != 0x80
            found[text, 1] += data[at] == 35
            if _is_ellipsis(data, at, high):
                found[text, 2] += 1
                found[text, 0] += 2 * (data[at] == 46)
                at += 2
            at += 1
        start = low
        while start < high:
            end, after = line_end(data, start, high)
            found[text, 3] += 1
            first = skip_space(data, start, end, classes)
            last = skip_space_back(data, first, end, classes)
            if first < last:
                bullet = data[first] == 0xE2 and data[first + 1] == 0x80 and data[first + 2] == 0xA2
                found[text, 4] += bullet or data[first] == 45
                found[text, 5] += _is_ellipsis(data, last - 3, last) if last - 3 >= first else 0
            start = after
    return found


@jit
def _filled(data: Bytes, offsets: Longs, short_length: int, classes: NDArray[np.uint32]) -> NDArray[np.int64]:
    found = np.zeros((len(offsets) - 1, 4), np.int64)
    for text in range(len(offsets) - 1):
        start, high = offsets[text], offsets[text + 1]
        while start <= high:
            end, after = _piece_end(data, start, high, FILLED_LINES)
            found[text, 3] += after <= high
            if skip_space(data, start, end, classes) < end:
                found[text, 0] += 1
                found[text, 1] += (classes[point_at(data, start_before(data, end))] & LINE_END) != 0
                found[text, 2] += count_chars(data, start, end) <= short_length
            start = after
    return found
