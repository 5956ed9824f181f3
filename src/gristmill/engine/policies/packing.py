"""Whether the workers wanted of each group fit on the machines, and where each goes.

There are several ways to place them. A quick answer tries the first of these; a thorough one tries all, and a
problem small enough is searched through. A worker that is there already keeps its place if its group still wants it;
only if the rest does not fit around those is everything placed afresh.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from gristmill.stages.resources import Resources

# What is free on one machine, what a worker takes of it, and which GPUs it gets.
#
# Amounts are whole numbers of 1/10,000 of a CPU or GPU: sums of shares stay exact, and 10 × 0.1 fills a GPU. A request
# in GB is a share of the GPU it lands on. A share goes to the fullest GPU it still fits on, so that whole GPUs stay
# whole.

UNITS = 10_000
NOISE = 1e-6  # what binary fractions are off by


def share_of_gpu(resources: Resources, gpu_memory_gb: float) -> int | None:
    """Return the units one worker takes of a GPU with this memory, or None if it can never fit."""
    wanted = resources.gpu_memory_gb / gpu_memory_gb if resources.gpu_memory_gb and gpu_memory_gb else 0.0
    if wanted > 1 or (resources.gpu_memory_gb and not gpu_memory_gb):
        return None
    # Rounded down, so that three thirds fit; at least 1, or a tiny share would fit any number of times.
    return max(1, int(wanted * UNITS + NOISE) if resources.gpu_memory_gb else round(min(resources.gpus, 1.0) * UNITS))


def choose_gpus(
    resources: Resources, free: Sequence[int], memory_gb: Sequence[float]
) -> tuple[tuple[int, int], ...] | None:
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
        """GPUs no worker uses."""
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
    """Units of GPU a worker takes, if its GPU has this much memory."""
    if resources.gpus >= 1:
        return round(resources.gpus) * UNITS
    return (share_of_gpu(resources, gpu_memory_gb) or UNITS) if resources.requires_gpu else 0


def take(room: Room, worker: Placed, resources: Resources) -> None:
    """Occupy a worker's place."""
    room.cpus -= cpu_units(resources)
    for gpu, units in worker.gpus:
        room.gpus[gpu] -= units


# Ways to place workers on machines. None is best for all: a problem in two dimensions is tried in several ways.
#
# Each takes groups in the order they are to be placed in, and rooms that it fills, and returns None if not all fit.
#
# | way             | good where                                                                               |
# |-----------------|------------------------------------------------------------------------------------------|
# | in turn         | one resource is scarce: every machine is filled before the next is begun                  |
# | in proportion   | CPUs and GPUs run out together: every machine has its part of every group                 |
# | like to like    | machines differ: a worker that needs few CPUs for its GPU goes where there are few         |
# | a few on each   | workers fit together in certain numbers only, as 3 of 4 CPUs and 4 of 5 do on one of 32   |

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

    A group with GPUs is placed `few` to a machine at most, before what is left of it goes anywhere.
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
    """How far a machine's free CPUs and GPUs are from the proportion a worker takes them in."""
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
    """Shares of a GPU, on the fullest GPUs they fit on, as many on each as fit."""
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


SMALL_WORKERS, SMALL_ROOMS, MAX_STATES = 32, 4, 4_000  # what is searched through: a few milliseconds


class Packing(msgspec.Struct):
    """Where the workers go. `kept` were there before."""

    kept: list[Placed] = []
    new: list[Placed] = []


def pack(
    wanted: Mapping[int, int],
    resources: Mapping[int, Resources],
    rooms: Sequence[Room],
    present: Sequence[Placed] = (),
    *,
    thorough: bool = True,
) -> Packing | None:
    """Place `wanted[group]` workers of each group, or return None if they do not all fit.

    `rooms` are the machines as if empty; `present` are the workers there now, of which as many as wanted are kept.
    """
    if present:
        free = {room.node: room.copy() for room in rooms}
        kept, missing = _keep(wanted, resources, free, present)
        new = _place_all(missing, resources, list(free.values()), thorough=thorough)
        if new is not None:
            return Packing(kept, new)
    new = _place_all(wanted, resources, rooms, thorough=thorough)
    return None if new is None else Packing([], new)


def _keep(
    wanted: Mapping[int, int], resources: Mapping[int, Resources], free: Mapping[int, Room], present: Sequence[Placed]
) -> tuple[list[Placed], dict[int, int]]:
    missing = dict(wanted)
    kept = []
    # Done for every worker of the cluster, a dozen times per plan: so this is `take`, without its calls.
    cpus = {group: cpu_units(needs) for group, needs in resources.items()}
    for worker in present:
        group, room = worker.group, free.get(worker.node)
        left = missing.get(group, 0)
        if left > 0 and room is not None:
            missing[group] = left - 1
            room.cpus -= cpus[group]
            for gpu, units in worker.gpus:
                room.gpus[gpu] -= units
            kept.append(worker)
    return kept, missing


def _place_all(
    missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room], *, thorough: bool
) -> list[Placed] | None:
    tries = _all_ways(missing, resources, rooms) if thorough else _quick_ways(missing, resources, rooms)
    return next((found for found in tries if found is not None), None)


def _quick_ways(
    missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room]
) -> Iterator[list[Placed] | None]:
    for order in _orders(missing, resources, rooms):
        yield in_turn(order, missing, resources, _copies(rooms))


def _all_ways(
    missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room]
) -> Iterator[list[Placed] | None]:
    yield from _quick_ways(missing, resources, rooms)
    found = _orders(missing, resources, rooms)
    for order in found:
        yield in_proportion(order, missing, resources, _copies(rooms))
    few = [number for number in FEW if number < _most_on_one(missing, resources, rooms)]
    for number in (ANY_NUMBER, *few):
        for order in found[:2]:
            yield like_to_like(order, missing, resources, _copies(rooms), few=number)
    if len(rooms) <= SMALL_ROOMS and sum(missing.values()) <= SMALL_WORKERS:
        workers = [group for group in found[0] for _ in range(missing[group])]
        yield _search(workers, resources, _copies(rooms))


def _orders(missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room]) -> list[list[int]]:
    """The different orders in which groups may be placed."""
    found: list[list[int]] = []
    for order in orders((group for group, count in missing.items() if count), resources, rooms):
        if order not in found:
            found.append(order)
    return found


def _most_on_one(missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room]) -> int:
    """Of the groups with GPUs, the most workers that one machine would have."""
    shapes = [resources[group] for group, count in missing.items() if count and resources[group].requires_gpu]
    return max((room.capacity(shape) for room in rooms for shape in shapes), default=0)


def _copies(rooms: Sequence[Room]) -> list[Room]:
    return [room.copy() for room in rooms]


def _search(workers: list[int], resources: Mapping[int, Resources], rooms: list[Room]) -> list[Placed] | None:
    """Try every way to place the workers, skipping states seen before; give up after MAX_STATES."""
    seen: set[object] = set()

    def go(position: int) -> list[Placed] | None:
        if position == len(workers):
            return []
        state = (position, tuple(sorted((room.cpus, *sorted(room.gpus)) for room in rooms)))
        if state in seen or len(seen) > MAX_STATES:
            return None
        seen.add(state)
        group = workers[position]
        for room in rooms:
            for worker in _places(group, resources[group], room):
                take(room, worker, resources[group])
                rest = go(position + 1)
                room.cpus += cpu_units(resources[group])
                for gpu, units in worker.gpus:
                    room.gpus[gpu] += units
                if rest is not None:
                    return [worker, *rest]
        return None

    return go(0)


def _places(group: int, resources: Resources, room: Room) -> list[Placed]:
    """All distinct places for one worker on one machine."""
    if room.cpus < cpu_units(resources):
        return []
    if resources.gpus >= 1:
        whole = [gpu for gpu, units in enumerate(room.gpus) if units == UNITS][: int(resources.gpus)]
        return [Placed(group, room.node, tuple((gpu, UNITS) for gpu in whole))] * (len(whole) == int(resources.gpus))
    if not resources.requires_gpu:
        return [Placed(group, room.node, ())]
    by_free: dict[tuple[int, float], Placed] = {}
    for gpu, units in enumerate(room.gpus):
        share = share_of_gpu(resources, room.gpu_memory_gb[gpu])
        if share is not None and share <= units:
            by_free[units, room.gpu_memory_gb[gpu]] = Placed(group, room.node, ((gpu, share),))
    return list(by_free.values())
