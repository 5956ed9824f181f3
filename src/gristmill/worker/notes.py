"""`Notes`: what a process is doing, in a block of memory that the process waiting for it can read."""

import mmap
import os

from gristmill.worker import shared_memory

NOTE_BYTES = 256  # in UTF-8, filled up with zeros


class Notes:
    """One line, overwritten by the next. One process creates the block and reads it, the other opens and writes it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._block = mmap.mmap(fd, NOTE_BYTES)

    @classmethod
    def create(cls, doing: str) -> "Notes":
        """Make a block; `fd` is to be inherited by the other process, and then closed here."""
        notes = cls(shared_memory.create(NOTE_BYTES, lambda view: None))
        notes(doing)
        return notes

    @classmethod
    def open(cls, fd: int) -> "Notes":
        """The block of an inherited descriptor, which is closed."""
        notes = cls(fd)
        notes.close_fd()
        return notes

    def close_fd(self) -> None:
        """Close the descriptor: the mapping alone keeps the memory."""
        os.close(self.fd)

    def __call__(self, doing: str) -> None:
        said = doing.encode(errors="replace")[:NOTE_BYTES]
        self._block[:] = said.ljust(NOTE_BYTES, b"\0")

    def read(self) -> str:
        """What was noted last."""
        return self._block[:].rstrip(b"\0").decode(errors="replace")
