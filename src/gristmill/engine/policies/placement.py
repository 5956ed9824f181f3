"""Which GPUs a worker gets.

Amounts are whole numbers of 1/10,000 of a GPU: sums of shares stay exact, and 10 × 0.1 fills a GPU. A request in GB is
a share of the GPU it lands on. A share goes to the fullest GPU it still fits on, so that whole GPUs stay whole.
"""

from collections.abc import Sequence

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
