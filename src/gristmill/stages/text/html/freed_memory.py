"""`keep_freed_memory`: what one page has used stays with the process, for the next one.

A page exists as bytes, as text of up to four times that, and as a tree, for some milliseconds. glibc gives blocks of
that size back to the system as soon as they are free, and the system clears every page of memory that it hands out
again: 7 % of the processor time from an archive to text. Up to 64 MiB are kept instead.
"""

import ctypes
import os

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1  # of glibc's mallopt
_MAPPED_BYTES = 32 << 20  # blocks from this size on come from the system: the largest value that glibc takes
_KEPT_BYTES = 64 << 20  # at the end of what malloc has
_SET_BY_USERS = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> None:
    """Let this process keep what it frees, where malloc is glibc's and the environment does not configure it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other mallocs do not give back so soon
    if mallopt is not None and not any(name in os.environ for name in _SET_BY_USERS):
        mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
