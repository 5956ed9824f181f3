"""Do so many workers of each group fit on the machines, and where does each go?

Workers are placed in the order of how hard they are to place: several whole GPUs, then shares of a GPU on the fullest
GPU they still fit on, then CPUs, first on machines without a free GPU. Where that fails the order is turned round once
(the largest CPU request first), and a problem small enough is searched through. Amounts are whole numbers of 1/10,000:
no sum drifts. A worker that is there already keeps its place if its group still wants it; only if the rest does not fit
around those is everything placed anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gristmill.engine.policies.placement import UNITS, share_of_gpu
from gristmill.stages.resources import Resources

SPREAD_ROOMS = 128  # machines; on more, what is left over hardly counts, and planning has to be quick
SMALL_WORKERS, SMALL_ROOMS, MAX_STATES = 32, 4, 4_000  # what is searched through: a few milliseconds


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

    def whole_gpus(self) -> int:
        """GPUs nobody uses."""
        return self.gpus.count(UNITS)


@dataclass(frozen=True, slots=True)
class Placed:
    """One worker of a group in its place."""

    group: int
    node: int
    gpus: tuple[tuple[int, int], ...]  # (gpu, units)


@dataclass
class Packing:
    """Where the workers go. `kept` were there before."""

    kept: list[Placed] = field(default_factory=list)
    new: list[Placed] = field(default_factory=list)


def cpu_units(resources: Resources) -> int:
    """A worker's CPUs in units."""
    return round(resources.cpus * UNITS)


def gpu_amount(resources: Resources, gpu_memory_gb: float) -> int:
    """Units of GPU a worker takes, if its GPU has so much memory."""
    if resources.gpus >= 1:
        return round(resources.gpus) * UNITS
    return (share_of_gpu(resources, gpu_memory_gb) or UNITS) if resources.requires_gpu else 0


def pack(
    wanted: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room], present: Sequence[Placed] = ()
) -> Packing | None:
    """Place `wanted[group]` workers of each group, or return None if they do not all fit.

    `rooms` are the machines as if empty; `present` are the workers there now, of which as many as wanted are kept.
    """
    if present:
        free = {room.node: room.copy() for room in rooms}
        kept, missing = _keep(wanted, resources, free, present)
        new = _place_all(missing, resources, list(free.values()))
        if new is not None:
            return Packing(kept, new)
    new = _place_all(wanted, resources, rooms)
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


def take(room: Room, worker: Placed, resources: Resources) -> None:
    """Occupy a worker's place."""
    room.cpus -= cpu_units(resources)
    for gpu, units in worker.gpus:
        room.gpus[gpu] -= units


def _place_all(
    missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: Sequence[Room]
) -> list[Placed] | None:
    groups = [group for group, count in missing.items() if count]
    gpu_memory = max((gb for room in rooms for gb in room.gpu_memory_gb), default=0.0)
    most_cpus = max((room.cpus for room in rooms), default=0) or 1
    most_gpus = max((len(room.gpus) for room in rooms), default=0) or 1
    shares = {group: gpu_amount(resources[group], gpu_memory) for group in groups}

    def gpus_first(group: int) -> tuple[float, float]:
        return (-shares[group], -cpu_units(resources[group]))

    def cpus_first(group: int) -> tuple[float, float]:
        return (-cpu_units(resources[group]), -shares[group])

    def largest_first(group: int) -> tuple[float, float]:
        of_cpus, of_gpus = cpu_units(resources[group]) / most_cpus, shares[group] / (most_gpus * UNITS)
        return (-max(of_cpus, of_gpus), -of_cpus - of_gpus)

    orders: tuple[Callable[[int], tuple[float, float]], ...] = (gpus_first, largest_first, cpus_first)
    for order in orders:
        free = [room.copy() for room in rooms]
        placed: list[Placed] = []
        if all(_place(group, missing[group], resources[group], free, placed) for group in sorted(groups, key=order)):
            return placed
    if 1 < len(rooms) <= SPREAD_ROOMS:
        for order in (largest_first, gpus_first):
            spread = _place_spread(sorted(groups, key=order), missing, resources, [room.copy() for room in rooms])
            if spread is not None:
                return spread
    if len(rooms) <= SMALL_ROOMS and sum(missing[group] for group in groups) <= SMALL_WORKERS:
        workers = [group for group in sorted(groups, key=gpus_first) for _ in range(missing[group])]
        return _search(workers, resources, [room.copy() for room in rooms])
    return None


def _place_spread(
    groups: list[int], missing: Mapping[int, int], resources: Mapping[int, Resources], rooms: list[Room]
) -> list[Placed] | None:
    """Give every machine its part of every group, then place the rest.

    One group after another would fill machines with what needs GPUs and leave their CPUs to nobody. Groups with GPUs
    are divided by the GPUs a machine has, the others by the CPUs those leave.
    """
    placed: list[Placed] = []
    left = dict(missing)
    for on_gpu in (True, False):
        some = [group for group in groups if resources[group].requires_gpu is on_gpu]
        amounts = [len(room.gpus) if on_gpu else max(0, room.cpus) for room in rooms]
        total = sum(amounts) or 1
        for room, amount in zip(rooms, amounts, strict=True):
            for group in some:
                before = len(placed)
                _place(group, missing[group] * amount // total, resources[group], [room], placed)
                left[group] -= len(placed) - before
    fits = all(_place(group, left[group], resources[group], rooms, placed) for group in groups if left[group])
    return placed if fits else None


def _place(group: int, count: int, resources: Resources, rooms: list[Room], placed: list[Placed]) -> bool:
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
