"""Do so many workers of each group fit on the machines, and where does each go?

`strategies` has the ways to place them. A quick answer tries the first of these; a thorough one tries all, and a
problem small enough is searched through. A worker that is there already keeps its place if its group still wants it;
only if the rest does not fit around those is everything placed anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.engine.policies.placement import UNITS, share_of_gpu
from gristmill.engine.policies.rooms import ANY_NUMBER, Placed, Room, cpu_units, take
from gristmill.engine.policies.strategies import FEW, in_proportion, in_turn, like_to_like, orders
from gristmill.stages.resources import Resources

SMALL_WORKERS, SMALL_ROOMS, MAX_STATES = 32, 4, 4_000  # what is searched through: a few milliseconds


@dataclass
class Packing:
    """Where the workers go. `kept` were there before."""

    kept: list[Placed] = field(default_factory=list)
    new: list[Placed] = field(default_factory=list)


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
    for worker in present:
        if missing.get(worker.group, 0) > 0 and worker.node in free:
            missing[worker.group] -= 1
            take(free[worker.node], worker, resources[worker.group])
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
    """All really different places for one worker on one machine."""
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
