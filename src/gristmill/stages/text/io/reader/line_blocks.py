"""Bytes to lines: where lines begin and end, and which part of a file owns them.

A line belongs to the byte range its first byte is in, so ranges can be read independently and every line is read once,
wherever the cuts are. A block is bytes that begin at a line's first byte and end with a newline.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import read_blocks, read_range
from gristmill.tasks.byte_search import find_byte

_NEWLINE = ord("\n")
_TAIL_BYTES = 1 << 16
Block: TypeAlias = "bytes | pa.Buffer"
BOM = b"\xef\xbb\xbf"


def line_bounds(block: Block) -> NDArray[np.int64]:
    """Return where each line begins, and where the last one ends; every line ends with a newline."""
    found = find_byte(np.frombuffer(block, np.uint8), ord("\n"))
    bounds = np.zeros(len(found) + 1, np.int64)
    np.add(found, 1, out=bounds[1:])
    return bounds


def read_owned_lines(path: str, start: int, end: int, *, storage_options: StorageOptions | None = None) -> Block:
    """Return the lines whose first byte is in [start, end), as one block; a last line without newline gets one."""
    # One byte before the range tells whether a line begins exactly at its start.
    begin = max(start - 1, 0)
    # Most last lines end in the spare room, so the block is neither moved nor copied.
    buffer = read_range(path, begin, end + _TAIL_BYTES, storage_options=storage_options)
    view = memoryview(buffer)
    first = _after_newline(view, 0) if start else 0
    if first is None or first >= end - begin:
        return buffer.slice(0, 0)
    if len(view) <= end - begin and view and view[-1] == _NEWLINE:
        return buffer.slice(first)
    last = _after_newline(view, min(end - begin, len(view)) - 1) if len(view) > first else first
    if last is not None:
        return buffer.slice(first, last - first)
    return pa.py_buffer(b"".join([view[first:], _rest_of_line(path, begin + len(view), storage_options)]))


def _after_newline(view: memoryview, position: int) -> int | None:
    """Where the line after the next newline begins."""
    step = _TAIL_BYTES
    while position < len(view):
        found = bytes(view[position : position + step]).find(b"\n")
        if found >= 0:
            return position + found + 1
        position += step
    return None


def _rest_of_line(path: str, position: int, storage_options: StorageOptions | None) -> bytes:
    """From inside a line to its newline, which is added at the end of the file."""
    pieces: list[bytes] = []
    step = _TAIL_BYTES
    while piece := bytes(memoryview(read_range(path, position, position + step, storage_options=storage_options))):
        cut = piece.find(b"\n") + 1
        if cut:
            return b"".join([*pieces, piece[:cut]])
        pieces.append(piece)
        position += len(piece)
        step = min(step * 2, 1 << 24)  # one line may be gigabytes
    return b"".join([*pieces, b"\n"])


def stream_blocks(path: str, block_bytes: int, *, storage_options: StorageOptions | None = None) -> Iterator[bytes]:
    """Yield blocks of about one size from a file that can only be read from its beginning.

    A damaged file yields the whole lines before the damage, then raises `ReadError`.
    """
    rest: list[bytes] = []
    for piece in read_blocks(path, block_bytes, storage_options=storage_options):
        cut = piece.rfind(b"\n") + 1
        if not cut:
            rest.append(piece)
            continue
        yield b"".join([*rest, memoryview(piece)[:cut]]) if rest or cut < len(piece) else piece
        rest = [piece[cut:]] if cut < len(piece) else []
    if any(rest):
        yield b"".join([*rest, b"\n"])
