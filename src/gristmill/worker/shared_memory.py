"""Blocks of memory without a name (`wire.Blocks`), handed from process to process as a file descriptor.

A block is a memfd (on Linux) or a file unlinked at birth (elsewhere). No name means nothing to clean up: when the last
process that holds it is gone, by whatever death, the kernel frees it. A reader that still maps a block keeps it alive
after all others have let go of it, so a stage may keep a reference to its input without seeing it change.
"""

import mmap
import os
from collections.abc import Callable
from pathlib import Path


def create(size: int, fill: Callable[[memoryview], object]) -> int:
    """Return the descriptor of a new block of `size` bytes, written by `fill`."""
    fd = _nameless_file()
    try:
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as mapped, memoryview(mapped) as view:
            fill(view)
    except BaseException:
        os.close(fd)
        raise
    return fd


def map_block(fd: int, size: int, *, writable: bool = False) -> mmap.mmap:
    """Map a block and close the descriptor: the mapping alone keeps the memory.

    Writing to one that is `writable` makes a private copy of the page, which no other process sees.
    """
    try:
        return mmap.mmap(fd, size, access=mmap.ACCESS_COPY if writable else mmap.ACCESS_READ)
    finally:
        os.close(fd)


def let_go(fd: int) -> None:
    """Close a descriptor that is not mapped here."""
    os.close(fd)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gristmill", os.MFD_CLOEXEC)
    import tempfile  # 2 ms of a worker's start, where no block needs it

    fd, path = tempfile.mkstemp(prefix="gristmill-")
    Path(path).unlink()
    return fd
