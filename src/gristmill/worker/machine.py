"""This machine: how much memory there is and is used, whether the system has been killing for it, and samples of it.

A sample costs about 0.1 ms without GPUs: two files the system keeps. Where the container has less memory than the
machine, the container's counts: that is what runs out.
"""

import contextlib
import os
import platform
import resource
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gristmill.metrics.node_sample import SAMPLE_S, GpuSample, NodeSample

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
    """What the system says it could give out now."""
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


STAT = Path("/proc/stat")


class NodeSampler:
    """Samples one machine, at most every `SAMPLE_S`; `node` is what the machine is called."""

    def __init__(self, node: str = "") -> None:
        self._node = node or platform.node() or "localhost"
        self._latest: NodeSample | None = None
        self._taken = 0.0
        self._gpus: Gpus | None = None

    def latest(self) -> NodeSample:
        """The last sample, or a new one if that is too old."""
        now = time.monotonic()
        if self._latest is None or now - self._taken >= SAMPLE_S:
            self._latest, self._taken = self.take(), now
        return self._latest

    def take(self) -> NodeSample:
        """A new sample."""
        self._gpus = self._gpus or Gpus()
        used, total = memory()
        return NodeSample(
            self._node, time.time(), used, total, cpu_seconds(), os.cpu_count() or 1, tuple(self._gpus.samples())
        )


def memory() -> tuple[int, int]:
    """Bytes in use, except those that could be had at once, and bytes there are."""
    used, total = _machine_memory()
    with contextlib.suppress(OSError, ValueError):  # no container, or no limit
        limit = int((CGROUP / "memory.max").read_text())
        if limit < total:
            held = int((CGROUP / "memory.current").read_text())
            return max(0, held - _files_kept()), limit
    return used, total


def _machine_memory() -> tuple[int, int]:
    with contextlib.suppress(OSError, KeyError):
        lines = (line.split() for line in MEMINFO.read_text().splitlines()[:8])
        found = {words[0]: int(words[1]) * 1024 for words in lines}
        return found["MemTotal:"] - found["MemAvailable:"], found["MemTotal:"]
    import psutil  # where the system does not say it in a file

    virtual = psutil.virtual_memory()
    return int(virtual.total - virtual.available), int(virtual.total)


def _files_kept() -> int:
    """The part of a container's memory that holds files not used lately: it is given up when it is needed."""
    for line in (CGROUP / "memory.stat").read_text().splitlines():
        if line.startswith("inactive_file "):
            return int(line.split()[1])
    return 0


def cpu_seconds() -> float:
    """Seconds all CPUs of the machine have been busy since it was started."""
    with contextlib.suppress(OSError, ValueError):
        user, nice, system, _idle, _waiting, *rest = map(int, STAT.read_text().split("\n", 1)[0].split()[1:9])
        return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
    import psutil

    times = psutil.cpu_times()
    return float(times.user + times.system)


class Gpus:
    """The GPUs NVML knows of. If anything is wrong with NVML, the machine has none to sample."""

    def __init__(self) -> None:
        self._nvml, self._handles = _open_nvml()

    def samples(self) -> Iterator[GpuSample]:
        if self._nvml is None:
            return
        for number, handle in enumerate(self._handles):
            with contextlib.suppress(self._nvml.NVMLError):  # one that has fallen off the bus, or does not count this
                held = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                busy = self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
                yield GpuSample(str(number), int(held.used), int(held.total), busy)


def _open_nvml() -> tuple[ModuleType | None, list[Any]]:
    try:
        import pynvml
    except ModuleNotFoundError:
        return None, []
    try:
        pynvml.nvmlInit()
        return pynvml, [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:  # no driver, no device
        return None, []
