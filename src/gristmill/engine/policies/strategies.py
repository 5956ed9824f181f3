"""Ways to place workers on machines. None is best for all: a problem in two dimensions is tried in several ways.

Each takes groups in the order they are to be placed in, and rooms that it fills, and returns None if not all fit.

| way             | good where                                                                               |
|-----------------|------------------------------------------------------------------------------------------|
| in turn         | one resource is scarce: every machine is filled before the next is begun                  |
| in proportion   | CPUs and GPUs run out together: every machine has its part of every group                 |
| like to like    | machines differ: who needs few CPUs for a GPU goes where there are few                    |
| a few on each   | workers fit together in certain numbers only, as 3 of 4 CPUs and 4 of 5 do on one of 32   |
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gristmill.engine.policies.placement import UNITS, share_of_gpu
from gristmill.engine.policies.rooms import ANY_NUMBER, Placed, Room, cpu_units, gpu_amount, take
from gristmill.stages.resources import Resources

FEW = (1, 2, 3, 4, 6, 8, 12)

Shapes = Mapping[int, Resources]
Counts = Mapping[int, int]


def orders(groups: Iterable[int], resources: Shapes, rooms: Sequence[Room]) -> Iterator[list[int]]:
    """Yield the groups, the hardest to place first, by three opinions of what is hard."""
    gpu_memory = max((gb for room in rooms for gb in room.gpu_memory_gb), default=0.0)
    most_cpus = max((room.cpus for room in rooms), default=0) or 1
    most_gpus = max((len(room.gpus) for room in rooms), default=0) or 1
    groups = list(groups)
    cpus = {group: cpu_units(resources[group]) for group in groups}
    gpus = {group: gpu_amount(resources[group], gpu_memory) for group in groups}

    def share(group: int) -> tuple[float, float]:
        of_cpus, of_gpus = cpus[group] / most_cpus, gpus[group] / (most_gpus * UNITS)
        return (-max(of_cpus, of_gpus), -of_cpus - of_gpus)

    yield sorted(groups, key=lambda group: (-gpus[group], -cpus[group]))
    yield sorted(groups, key=share)
    yield sorted(groups, key=lambda group: (-cpus[group], -gpus[group]))


def in_turn(groups: Sequence[int], missing: Counts, resources: Shapes, rooms: list[Room]) -> list[Placed] | None:
    """Place one group after another, each on the machines where least is left over."""
    placed: list[Placed] = []
    fits = all(place(group, missing[group], resources[group], rooms, placed) for group in groups)
    return placed if fits else None


def in_proportion(groups: Sequence[int], missing: Counts, resources: Shapes, rooms: list[Room]) -> list[Placed] | None:
    """Divide every group among the machines by how many of it each has room for."""
    placed: list[Placed] = []
    for group in groups:
        capacities = [room.capacity(resources[group]) for room in rooms]
        left, total = missing[group], sum(capacities)
        for room, capacity in zip(rooms, capacities, strict=True):
            if capacity:
                before = len(placed)
                # What rounding gives to one machine it takes from the next: both are parts of what is left.
                place(group, round(left * capacity / total), resources[group], [room], placed)
                left -= len(placed) - before
                total -= capacity
        if left and not place(group, left, resources[group], rooms, placed):
            return None
    return placed


def like_to_like(
    groups: Sequence[int], missing: Counts, resources: Shapes, rooms: list[Room], *, few: int = ANY_NUMBER
) -> list[Placed] | None:
    """Place every group where CPUs and GPUs are free in the proportion it takes them.

    A group with GPUs comes to a machine in small numbers, `few` at most, before what is left of it goes anywhere.
    """
    placed: list[Placed] = []
    for group in groups:
        shape, left = resources[group], missing[group]
        for room in sorted(rooms, key=_unlikeness(shape)):
            before = len(placed)
            place(group, min(left, few) if shape.requires_gpu else left, shape, [room], placed)
            left -= len(placed) - before
            if not left:
                break
        if left and not place(group, left, shape, rooms, placed):
            return None
    return placed


def _unlikeness(resources: Resources) -> Callable[[Room], float]:
    """How far a machine is from having CPUs and GPUs free as a worker takes them."""
    cpus = max(1, cpu_units(resources))

    def of(room: Room) -> float:
        free_cpus, free_gpus = max(1, room.cpus), sum(room.gpus)
        if not resources.requires_gpu:
            return free_gpus / free_cpus
        share = gpu_amount(resources, max(room.gpu_memory_gb, default=0.0))
        return abs(math.log(free_cpus * share / (max(1, free_gpus) * cpus)))

    return of


def place(group: int, count: int, resources: Resources, rooms: list[Room], placed: list[Placed]) -> bool:
    """Place `count` workers of one group; False if not all fit."""
    if resources.gpus >= 1:
        return _place_whole(group, count, resources, rooms, placed)
    if resources.requires_gpu:
        return _place_shares(group, count, resources, rooms, placed)
    cpus = cpu_units(resources)
    for room in sorted(rooms, key=Room.whole_gpus):
        here = min(count, max(0, room.cpus) // cpus) if cpus else count
        room.cpus -= here * cpus
        placed += [Placed(group, room.node, ())] * here
        count -= here
        if not count:
            return True
    return count == 0


def _place_whole(group: int, count: int, resources: Resources, rooms: list[Room], placed: list[Placed]) -> bool:
    """Whole GPUs, on the machines where fewest are left over."""
    cpus, wanted = cpu_units(resources), int(resources.gpus)
    for room in sorted(rooms, key=Room.whole_gpus):
        while count and room.cpus >= cpus and room.whole_gpus() >= wanted:
            gpus = [gpu for gpu, units in enumerate(room.gpus) if units == UNITS][:wanted]
            worker = Placed(group, room.node, tuple((gpu, UNITS) for gpu in gpus))
            take(room, worker, resources)
            placed.append(worker)
            count -= 1
        if not count:
            return True
    return count == 0


def _place_shares(group: int, count: int, resources: Resources, rooms: list[Room], placed: list[Placed]) -> bool:
    """Shares of a GPU, on the fullest GPUs they fit on, as many on each as go."""
    cpus = cpu_units(resources)
    slots = []
    for position, room in enumerate(rooms):
        for gpu, units in enumerate(room.gpus):
            share = share_of_gpu(resources, room.gpu_memory_gb[gpu])
            if share is not None and share <= units:
                slots.append((units, position, gpu, share))
    for units, position, gpu, share in sorted(slots):
        room = rooms[position]
        here = min(count, units // share, max(0, room.cpus) // cpus if cpus else count)
        room.gpus[gpu] -= here * share
        room.cpus -= here * cpus
        placed += [Placed(group, room.node, ((gpu, share),))] * here
        count -= here
        if not count:
            return True
    return count == 0
