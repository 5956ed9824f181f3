"""What driver, fork server and workers say to each other. Plain tuples on the wire: this is the hot path.

A task travels as a `Parcel`: a header, and a body that is in the message itself if it is small, or in a block of its
own: shared memory on one machine, an object in Ray's store on a cluster. The driver passes parcels on and never opens
them, except those of a run's final tasks.
"""

import mmap
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from gristmill.engine.commands import Assignment, Care
from gristmill.engine.plan import AnyTask
from gristmill.metrics.snapshot import StageCounts
from gristmill.tasks.serialization import WRITABLE, dump, dumped_size, load, write_into
from gristmill.worker import shared_memory

INLINE_BYTES = 1 << 15  # up to here a copy through the socket is cheaper than a block of its own (measured: ~40 µs)

WireCounts = tuple[Any, ...]  # the fields of StageCounts, in their order


class BlockLost(Exception):  # not an error: the scheduler has the task made again
    """The machine that held the body of a task is gone."""


class Blocks(Protocol):
    """Where large bodies are. A process knows each of its blocks by a number; here numbers are file descriptors."""

    def create(self, size: int, fill: Callable[[memoryview], object]) -> int: ...
    def map_block(self, fd: int, size: int, *, writable: bool) -> mmap.mmap | memoryview: ...  # uses the number up
    def let_go(self, fd: int) -> None: ...


class Parcel(NamedTuple):
    """A task, packed. `body` is None if it is in the block `fd`."""

    header: bytes
    body: bytes | None
    size: int
    fd: int = -1


def pack(task: AnyTask, blocks: Blocks = shared_memory) -> Parcel:
    """Pack a task for another process."""
    parts = dump(task)
    if isinstance(parts[1], bytes) and len(parts[1]) <= INLINE_BYTES:
        return Parcel(parts[0], parts[1], len(parts[1]))
    size = dumped_size(parts)
    if size <= INLINE_BYTES:
        body = bytearray(size)
        write_into(parts, memoryview(body))
        return Parcel(parts[0], bytes(body), size)
    return Parcel(parts[0], None, size, blocks.create(size, lambda view: write_into(parts, view)))


def unpack(parcel: Parcel, blocks: Blocks = shared_memory) -> AnyTask:
    """Make the task again; a body in a block is mapped, not copied, and its descriptor is used up."""
    if parcel.body is not None:
        return load(parcel.header, parcel.body)
    mapped = blocks.map_block(parcel.fd, parcel.size, writable=parcel.header[:1] == WRITABLE)
    return load(parcel.header, memoryview(mapped))


def to_wire(assignment: Assignment, parcel: Parcel) -> tuple[object, ...]:
    """An assignment with its parcel, except the descriptor, which rides beside the message.

    How it is to be done is left out for a first attempt, as nearly all are.
    """
    a = assignment
    how: tuple[object, ...] = ()
    if a.attempt or a.skip or a.care is not Care.NORMAL:
        how = (a.care.value, a.attempt, a.condemned, a.cause, a.out_of_patience, a.step_from, a.skip)
    return (a.task, a.item_id, parcel[:3], how)


def counts_to_wire(counts: StageCounts) -> WireCounts:
    return msgspec.structs.astuple(counts)


def counts_from_wire(wire: WireCounts) -> StageCounts:
    return StageCounts(*wire)
