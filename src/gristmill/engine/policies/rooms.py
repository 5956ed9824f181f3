"""`Room`: what is free on one machine, and what a worker takes of it.

Amounts are whole numbers of 1/10,000: no sum drifts.
"""

from dataclasses import dataclass

from gristmill.engine.policies.placement import UNITS, share_of_gpu
from gristmill.stages.resources import Resources

ANY_NUMBER = 1 << 30


@dataclass(slots=True)
class Room:
    """What is free on one machine."""

    node: int
    cpus: int  # units
    gpus: list[int]  # units free on each
    gpu_memory_gb: tuple[float, ...] = ()

    def copy(self) -> "Room":
        """An independent copy."""
        return Room(self.node, self.cpus, list(self.gpus), self.gpu_memory_gb)

    def capacity(self, resources: Resources) -> int:
        """How many workers of a kind there is room for."""
        cpus = cpu_units(resources)
        by_cpus = max(0, self.cpus) // cpus if cpus else ANY_NUMBER
        if resources.gpus >= 1:
            return min(by_cpus, self.whole_gpus() // int(resources.gpus))
        if not resources.requires_gpu:
            return by_cpus
        shares = [share_of_gpu(resources, memory_gb) for memory_gb in self.gpu_memory_gb]
        return min(by_cpus, sum(units // share for units, share in zip(self.gpus, shares, strict=True) if share))

    def whole_gpus(self) -> int:
        """GPUs nobody uses."""
        return self.gpus.count(UNITS)


@dataclass(frozen=True, slots=True)
class Placed:
    """One worker of a group in its place."""

    group: int
    node: int
    gpus: tuple[tuple[int, int], ...]  # (gpu, units)


def cpu_units(resources: Resources) -> int:
    """A worker's CPUs in units."""
    return round(resources.cpus * UNITS)


def gpu_amount(resources: Resources, gpu_memory_gb: float) -> int:
    """Units of GPU a worker takes, if its GPU has so much memory."""
    if resources.gpus >= 1:
        return round(resources.gpus) * UNITS
    return (share_of_gpu(resources, gpu_memory_gb) or UNITS) if resources.requires_gpu else 0


def take(room: Room, worker: Placed, resources: Resources) -> None:
    """Occupy a worker's place."""
    room.cpus -= cpu_units(resources)
    for gpu, units in worker.gpus:
        room.gpus[gpu] -= units
