"""`ParcelShelf`: the parcels a driver holds, each known to everybody else by a number.

To the scheduler a task's payload is this number: a decision cannot depend on what is in a parcel, and the event log
(`engine/event_log.py`) has nothing to translate.
"""

import functools
from collections.abc import Callable

from gristmill.engine.commands import Assignment
from gristmill.engine.plan import AnyTask
from gristmill.worker import shared_memory
from gristmill.worker.wire import Blocks, Parcel, to_wire, unpack


class ParcelShelf:
    """Parcels by number, from their arrival until they are released or kept."""

    def __init__(self, blocks: Blocks = shared_memory) -> None:
        self._blocks = blocks
        self._parcels: dict[int, Parcel] = {}
        self._next = 0
        self.look: Callable[[int], Parcel] = self._parcels.__getitem__  # leaves it here; every task is looked up

    def put(self, parcel: Parcel) -> int:
        """Hold a parcel; return its number, which is never used again."""
        number = self._next
        self._next = number + 1
        self._parcels[number] = parcel
        return number

    def call(self, assignments: list[Assignment]) -> tuple[list[tuple[object, ...]], list[int]]:
        """Return tasks as a worker is told of them, and the blocks that go with them."""
        told, fds = [], []
        for assignment in assignments:
            parcel = self.look(assignment.payload)  # type: ignore[arg-type]  # from `put`
            told.append(to_wire(assignment, parcel))
            if parcel.fd >= 0:
                fds.append(parcel.fd)
        return told, fds

    def release(self, number: int) -> None:
        """Close the block of a parcel, if it has one. Whoever maps it keeps it."""
        parcel = self._parcels.pop(number)
        if parcel.fd >= 0:
            self._blocks.let_go(parcel.fd)

    def keep(self, number: int) -> Callable[[], AnyTask]:
        """Return a function that unpacks a final task. A block is mapped now: descriptors are few."""
        parcel = self._parcels.pop(number)
        if parcel.body is not None:
            return functools.partial(unpack, parcel)
        task = unpack(parcel, self._blocks)
        return lambda: task
