"""What no schedule can beat: the least time a finite job takes.

    LB = max(area bound, slowest stage at its cap, longest item's path)

The area bound counts set-up too: a stage with W seconds of work and a set-up of tau needs at least
max(1, W / (T - tau)) workers to be done by T, and each occupies its resources for tau before it does anything. With C_d
the amount of resource d there is and r_id what a worker of stage i takes of it, no T is feasible unless for every d

    sum_i  r_id * (W_i + tau_i * max(1, W_i / (T - tau_i)))  <=  C_d * T

The left side falls with T and the right side rises, so the least feasible T is found by bisection.
"""

from collections.abc import Sequence

import msgspec

from gristmill.engine.policies.rooms import Room, cpu_units, gpu_amount
from gristmill.stages.resources import Resources

ROUNDS = 60  # halvings: more than a float has digits


class Work(msgspec.Struct, frozen=True):
    """What one stage has to do in all. `cap` is the most workers it may have at a time."""

    resources: Resources
    seconds: float
    setup_s: float = 0.0
    cap: int | None = None


def makespan_bound(works: Sequence[Work], rooms: Sequence[Room], longest_path_s: float = 0.0) -> float:
    """Return the seconds the job takes at least on these machines."""
    present = [work for work in works if work.seconds > 0]
    at_cap = [work.setup_s + work.seconds / work.cap for work in present if work.cap]
    cpus = _area_s([(work, cpu_units(work.resources)) for work in present], sum(room.cpus for room in rooms))
    memory = max((gb for room in rooms for gb in room.gpu_memory_gb), default=0.0)
    on_gpu = [(work, gpu_amount(work.resources, memory)) for work in present]
    gpus = _area_s(on_gpu, sum(sum(room.gpus) for room in rooms))
    return max([cpus, gpus, longest_path_s, *at_cap])


def _area_s(works: Sequence[tuple[Work, int]], capacity: int) -> float:
    """The least T at which the work, set-up included, fits into `capacity` units for T seconds."""
    works = [(work, units) for work, units in works if units]
    if not works or not capacity:
        return 0.0
    low = max(work.setup_s for work, _ in works)
    high = low + sum(units * (work.seconds + work.setup_s) for work, units in works) / min(u for _, u in works)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if _occupied(works, middle) <= capacity * middle:
            high = middle
        else:
            low = middle
    return high


def _occupied(works: Sequence[tuple[Work, int]], total_s: float) -> float:
    """Unit-seconds the work takes if it has to be done by `total_s`."""
    occupied = 0.0
    for work, units in works:
        left = total_s - work.setup_s
        workers = max(1.0, work.seconds / left) if left > 0 else float("inf")
        occupied += units * (work.seconds + (work.setup_s * workers if work.setup_s else 0.0))
    return occupied
