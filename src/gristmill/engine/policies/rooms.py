"""What is free on one machine, what a worker takes of it, and which GPUs it gets.

Amounts are whole numbers of 1/10,000 of a CPU or GPU: sums of shares stay exact, and 10 × 0.1 fills a GPU. A request in
GB is a share of the GPU it lands on. A share goes to the fullest GPU it still fits on, so that whole GPUs stay whole.
"""

from collections.abc import Sequence

import msgspec

from gristmill.stages.resources import Resources

UNITS = 10_000
NOISE = 1e-6  # what binary fractions are off by


def share_of_gpu(resources: Resources, gpu_memory_gb: float) -> int | None:
    """Return the units one worker takes of a GPU with this memory, or None if it can never fit."""
    wanted = resources.gpu_memory_gb / gpu_memory_gb if resources.gpu_memory_gb and gpu_memory_gb else 0.0
    if wanted > 1 or (resources.gpu_memory_gb and not gpu_memory_gb):
        return None
    # Down, so that three thirds fit; a share too small to count would fit any number of times.
    return max(1, int(wanted * UNITS + NOISE) if resources.gpu_memory_gb else round(min(resources.gpus, 1.0) * UNITS))


def place(resources: Resources, free: Sequence[int], memory_gb: Sequence[float]) -> tuple[tuple[int, int], ...] | None:
    """Return ((gpu, units), ...) for one worker, or None if it does not fit now.

    free       [G]  free units of each GPU
    memory_gb  [G]  memory of each GPU
    """
    if not resources.requires_gpu:
        return ()
    if resources.gpus > 1:
        whole = [g for g, units in enumerate(free) if units == UNITS]
        wanted = int(resources.gpus)
        return tuple((g, UNITS) for g in whole[:wanted]) if len(whole) >= wanted else None
    best: tuple[int, int, int] | None = None  # (units left, gpu, units taken)
    for gpu, units in enumerate(free):
        share = share_of_gpu(resources, memory_gb[gpu])
        if share is not None and share <= units and (best is None or units - share < best[0]):
            best = (units - share, gpu, share)
    return None if best is None else ((best[1], best[2]),)


ANY_NUMBER = 1 << 30


class Room(msgspec.Struct):
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


class Placed(msgspec.Struct, frozen=True):
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
