"""How many lines a file has up to each of its blocks of 4 MiB, as far as they have been counted.

A thread of its own counts, with the file opened a second time; others ask for the counts meanwhile.
"""

import threading
from bisect import bisect_right

from gristmill.inspection.byte_access import open_bytes

BLOCK_BYTES = 4 << 20


class LineCounts:
    """The counts of one file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before = [0]  # lines that ended before each block
        self._total: int | None = None

    @property
    def total(self) -> int | None:
        """All lines, once everything has been counted."""
        return self._total

    def counted(self) -> tuple[int, int]:
        """How many lines have been counted, and in how many bytes."""
        with self._lock:
            return self._before[-1], (len(self._before) - 1) * BLOCK_BYTES

    def before(self, offset: int) -> int | None:
        """How many lines end before the block an offset is in; None if that is not known yet."""
        with self._lock:
            block = offset // BLOCK_BYTES
            return self._before[block] if block < len(self._before) else None

    def block_of(self, line: int) -> tuple[int, int, bool]:
        """The start of the block in which a line (from 0) begins, the lines before, and whether it is really there.

        If the line is not known to be there, the block is the last one that was counted.
        """
        with self._lock:
            block = bisect_right(self._before, line) - 1
            is_known = block < len(self._before) - 1 or self._total is not None
            return block * BLOCK_BYTES, self._before[block], is_known

    def count(self, path: str, stopped: threading.Event) -> None:
        """Count the lines of the file until that is done or `stopped` is set."""
        if self._total is not None:
            return
        opened = open_bytes(path)
        try:
            position = self._begin_again()
            is_open = False
            while not stopped.is_set() and (piece := opened.read(position, BLOCK_BYTES)):
                position += len(piece)
                is_open = not piece.endswith(b"\n")
                self._add(piece.count(b"\n"), is_whole=len(piece) == BLOCK_BYTES)
            if not stopped.is_set():
                self._end(is_open=is_open)
        finally:
            opened.close()

    def _begin_again(self) -> int:
        with self._lock:
            self._before = [0]
            self._rest = 0
        return 0

    def _add(self, lines: int, *, is_whole: bool) -> None:
        with self._lock:
            if is_whole:
                self._before.append(self._before[-1] + lines)
            else:
                self._rest = lines

    def _end(self, *, is_open: bool) -> None:
        with self._lock:
            self._total = self._before[-1] + self._rest + is_open
