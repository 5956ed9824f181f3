"""Samples a process and its descendants: memory with shared pages counted once, and processor time.

The sampler runs in the parent of what it measures, so that it is not part of the measurement.
"""

import contextlib
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

INTERVAL_S = 0.1


@dataclass
class TreeUse:
    """What a process tree used."""

    wall_s: float = 0.0
    peak_bytes: int = 0
    cpu_s: float = 0.0
    queued_s: float = 0.0  # ready to run, but another program had the core
    most_processes: int = 0
    memory: list[int] = field(default_factory=list)  # a sample every INTERVAL_S

    @property
    def busy_cores(self) -> float:
        return self.cpu_s / self.wall_s

    @property
    def wanted_cores(self) -> float:
        """What `busy_cores` would be on a machine with nothing else to do."""
        return (self.cpu_s + self.queued_s) / self.wall_s


def measure(
    command: Sequence[str], env: Mapping[str, str] | None = None, *, cwd: Path | None = None, quiet: bool = False
) -> TreeUse:
    """Run a command to its end and return what it and its descendants used; raises if it fails.

    With `quiet`, nothing is shown of what it prints unless it fails.
    """
    use = TreeUse()
    before = _reaped_s()
    with tempfile.TemporaryFile() as printed:
        started = time.perf_counter()
        output = printed if quiet else None
        process = subprocess.Popen(command, env=env, cwd=cwd, stdout=output, stderr=output)
        root = psutil.Process(process.pid)
        cpu: dict[int, tuple[float, float]] = {}
        while True:
            try:
                process.wait(INTERVAL_S)
                break
            except subprocess.TimeoutExpired:
                _sample(root, use, cpu)
        use.wall_s = time.perf_counter() - started
        printed.seek(0)
        said = printed.read().decode(errors="replace")
    # Samples miss the last moments of every process, and the system what nobody has waited for.
    use.cpu_s = max(sum(running for running, _ in cpu.values()), _reaped_s() - before)
    use.queued_s = sum(queued for _, queued in cpu.values())
    if process.returncode:
        raise SystemExit(f"{said}{command}: expected exit code 0; got {process.returncode}")
    return use


def _reaped_s() -> float:
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def _sample(root: psutil.Process, use: TreeUse, cpu: dict[int, tuple[float, float]]) -> None:
    total, number = 0, 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                times = process.cpu_times()
                cpu[process.pid] = times.user + times.system, _queued_s(process.pid)
                total += _bytes(process)
                number += 1
    use.memory.append(total)
    use.peak_bytes = max(use.peak_bytes, total)
    use.most_processes = max(use.most_processes, number)


def _queued_s(pid: int) -> float:
    """Seconds the first thread has waited for a core; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _bytes(process: psutil.Process) -> int:
    full = process.memory_full_info()
    return int(getattr(full, "pss", full.rss))
