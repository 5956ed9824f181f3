"""Bytes to lines: where lines begin and end, and which part of a file owns them.

A line belongs to the byte range its first byte is in, so ranges can be read independently and every line is read once,
wherever the cuts are. A block is bytes that begin at a line's first byte and end with a newline.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ReadError
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import read_pieces, read_range
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


def stream_blocks(path: str, block_bytes: int, *, storage_options: StorageOptions | None = None) -> Iterator[Block]:
    """Yield blocks of at most one size, if no line is longer, from a file that can only be read from its beginning.

    A damaged file yields the whole lines before the damage, then raises `ReadError`.
    """
    block = _GrowingBlock(block_bytes)
    try:
        for piece in read_pieces(path, storage_options=storage_options):
            for part in (piece[i : i + block_bytes] for i in range(0, len(piece), block_bytes)):
                if block.is_full(part):
                    yield from block.take_lines()
                block.append(part)
    except ReadError:
        yield from block.take_lines()
        raise
    if block.used:
        if block.view[block.used - 1] != _NEWLINE:
            block.append(b"\n")
        yield from block.take_lines()


class _GrowingBlock:
    """A block being filled. What is taken from it is never written to again."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._renew(b"", block_bytes)

    def _renew(self, content: bytes | memoryview, room: int) -> None:
        self._buffer = pa.allocate_buffer(room)
        self.view = memoryview(self._buffer).cast("B")
        self.view[: len(content)] = content
        self.used = len(content)

    def is_full(self, part: bytes) -> bool:
        return self.used + len(part) > self._block_bytes

    def append(self, part: bytes) -> None:
        end = self.used + len(part)
        if end > len(self.view):
            self._renew(self.view[: self.used], 2 * end)
        self.view[self.used : end] = part
        self.used = end

    def take_lines(self) -> Iterator[Block]:
        """Yield the whole lines, if there are any, and keep what is after them."""
        cut = _after_last_newline(self.view, self.used)
        if cut:
            block, rest = self._buffer.slice(0, cut), self.view[cut : self.used]
            self._renew(rest, max(self._block_bytes, len(rest)))
            yield block


def _after_last_newline(view: memoryview, end: int) -> int:
    while end > 0:
        start = max(0, end - _TAIL_BYTES)
        found = bytes(view[start:end]).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
