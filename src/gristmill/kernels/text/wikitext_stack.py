"""The stack of what is open while wikitext is scanned, and small things every part of the scanner does with it."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text import wikitext_layout as lay
from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes

Longs = NDArray[np.int64]

_NEWLINE, _SPACE = 0x0A, 0x20


@part
def run_length(data: Bytes, pos: int, stop: int) -> int:
    """How many times the byte here is repeated in a row."""
    end = pos + 1
    while end < stop and data[end] == data[pos]:
        end += 1
    return end - pos


@inline
def top_kind(stack: Longs, depth: int) -> int:
    """The kind of the innermost open thing, -1 if nothing is open."""
    return stack[(depth - 1) * lay.ENTRY + lay.KIND] if depth else -1


@part
def push(stack: Longs, depth: int, kind: int, start: int) -> int:
    """Open something that begins here in the result; return how much is open now."""
    entry = depth * lay.ENTRY
    stack[entry + lay.KIND], stack[entry + lay.START] = kind, start
    stack[entry + lay.MARK] = stack[entry + lay.COUNT] = stack[entry + lay.FLAG] = 0
    return depth + 1


@inline
def floor(stack: Longs, depth: int) -> int:
    """Where the innermost open thing begins in the result: nothing before it may change."""
    return stack[(depth - 1) * lay.ENTRY + lay.START] if depth else 0


@inline
def cut_back(at: int, notes: Longs) -> None:
    """Forget places in the result that are gone now that it ends here."""
    if notes[lay.DROPPED_AT] > at:
        notes[lay.DROPPED_AT] = -1
    if at < notes[lay.HEADING_AT] + notes[lay.HEADING_LEVEL]:
        notes[lay.HEADING_LEVEL] = 0


@part
def after_drop(
    data: Bytes, pos: int, stop: int, out: Bytes, at: int, stack: Longs, depth: int, notes: Longs
) -> tuple[int, int]:
    """Note that something was dropped here; return where to go on, and where the result ends.

    No two spaces are left where it was, and none before a comma or a full stop.
    """
    notes[lay.DROPPED_AT] = at
    is_behind_space = at > floor(stack, depth) and out[at - 1] == _SPACE
    if pos < stop and data[pos] == _SPACE and (is_behind_space or at == 0 or out[at - 1] == _NEWLINE):
        pos += 1
    if pos < stop and is_behind_space:
        byte = data[pos]
        if byte == 0x2C or byte == 0x2E or byte == 0x3A or byte == 0x3B:
            notes[lay.DROPPED_AT] = at - 1
            return pos, at - 1
    return pos, at


@part
def write_newline(out: Bytes, at: int, floor: int) -> int:
    """End a line: no white space before its end, and no more than one blank line."""
    while at > floor and (out[at - 1] == _SPACE or out[at - 1] == 0x09 or out[at - 1] == 0x0D):
        at -= 1
    if at == 0 or (at - floor >= 2 and out[at - 1] == _NEWLINE and out[at - 2] == _NEWLINE):
        return at
    out[at] = _NEWLINE
    return at + 1
