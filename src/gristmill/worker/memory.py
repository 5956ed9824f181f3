"""How much memory there is, how much is used, and whether the system has been killing for it."""

import contextlib
import os
import resource
from collections.abc import Iterable
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
DEFAULT_SHARE = 0.8  # of what is available when the run starts


def default_limit() -> int:
    """A share of the memory that is free now, within the container's limit if there is one."""
    available = _available()
    with contextlib.suppress(OSError, ValueError):
        limit = int((CGROUP / "memory.max").read_text())
        available = min(available, limit - int((CGROUP / "memory.current").read_text()))
    return int(available * DEFAULT_SHARE)


def _available() -> int:
    """What the system says it could give to somebody who asks now."""
    with contextlib.suppress(OSError):
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    import psutil  # where the system does not say it in a file; it takes 7 ms to load

    return int(psutil.virtual_memory().available)


def resident_bytes(pids: Iterable[int]) -> int:
    """Memory of these processes. Pages they share are counted once where the system tells (Pss on Linux)."""
    return sum(_proportional(pid) for pid in pids)


def own_bytes() -> int:
    """Memory of this process. What it shares with others is counted whole, which takes microseconds to find out.

    Adding up shares takes the system 2 ms for every 400 MB: more than a small run in one process takes otherwise.
    """
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return resident_bytes([os.getpid()])


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        return 0
    import psutil

    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def oom_kills() -> int:
    """How many processes the kernel has killed for memory so far; 0 where it does not say."""
    for path in (CGROUP / "memory.events", Path("/proc/vmstat")):
        with contextlib.suppress(OSError):
            for line in path.read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0
