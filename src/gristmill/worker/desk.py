"""The driver's desk: the parcels it holds, what it says to workers and what it hears of them.

The same for processes behind sockets and for actors of a cluster: how messages travel is the pool's. What they mean to
a worker is in `loop.py`.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from gristmill.engine import events as e
from gristmill.engine.commands import Assignment
from gristmill.engine.plan import AnyTask
from gristmill.worker import shared_memory
from gristmill.worker.channel import Message
from gristmill.worker.wire import Blocks, Parcel, counts_from_wire, to_wire, unpack


class ParcelShelf:
    """Parcels by number, from their arrival until they are released or kept.

    To the scheduler a task's payload is this number: a decision cannot depend on what is in a parcel, and the event log
    (`engine/event_log.py`) has nothing to translate.
    """

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
        """Close the block of a parcel, if it has one. A process that maps it keeps it."""
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


class Posting(ABC):
    """The part of a pool that speaks."""

    _shelf: ParcelShelf

    def send(self, number: int, assignments: list[Assignment]) -> None:
        call, fds = self._shelf.call(assignments)
        self._post(number, ("call", call), fds)

    def recall(self, number: int, tasks: tuple[int, ...]) -> None:
        self._post(number, ("recall", tasks))

    def grant(self, number: int, task: int) -> None:
        self._post(number, ("grant", task))

    def drain(self, number: int) -> None:
        self._post(number, ("drain", None))

    def release(self, payload: int) -> None:
        self._shelf.release(payload)

    @abstractmethod
    def _post(self, number: int, message: tuple[str, object], fds: Sequence[int] = ()) -> None:
        """Let a message go out with the next flush; a worker that is gone hears nothing."""


# Messages whose fields are the event's, after the worker.
_SAID_AS_IT_IS: dict[str, Callable[..., e.Event]] = {
    "stepped": e.TaskStepped,
    "raised": e.TaskRaised,
    "ready": e.WorkerReady,
}


class Hearing(msgspec.Struct):
    """What has been heard of one worker. `drained` and `failed_setup`: it has said why it is about to end."""

    number: int
    shelf: ParcelShelf
    drained: bool = False
    failed_setup: bool = False
    rss_bytes: int = 0

    def events(self, batch: Iterable[Message], fds: Iterable[int]) -> list[e.Event]:
        """Translate one batch of messages, with the blocks that came with it, in order."""
        queue = iter(fds)
        events: list[e.Event] = []
        for message in batch:
            event = self._event(message, queue)
            if event is not None:
                events.append(event)
            if message[0] == "done" and message[-1] != self.rss_bytes:
                self.rss_bytes = message[-1]
                events.append(e.MemorySampled(self.number, message[-1]))
        return events

    def _event(self, message: Message, fds: Iterator[int]) -> e.Event | None:
        kind = message[0]
        if kind == "done":
            _, task, outputs, useful_s, notes, _ = message
            made = tuple([self._output(output, fds) for output in outputs])
            if not notes:
                return e.TaskFinished(self.number, task, made, useful_s, ())
            counts, side_files, facts, files, learnt = notes
            per_stage = tuple([counts_from_wire(wire) for wire in counts])
            return e.TaskFinished(
                self.number, task, made, useful_s, per_stage, tuple(side_files), tuple(facts), tuple(files), learnt
            )
        if kind == "emitted":
            return e.TaskEmitted(self.number, message[1], self._output(message[2], fds))
        if kind in _SAID_AS_IT_IS:
            return _SAID_AS_IT_IS[kind](self.number, *message[1:])
        if kind == "setup_failed":
            self.failed_setup = True
            return e.WorkerSetupFailed(self.number, message[1])
        self.drained = True
        return None

    def _output(self, wire: Message, fds: Iterator[int]) -> e.Output:
        index, item_id, num_bytes, header, body, size, num_items = wire
        parcel = Parcel(header, body, size, -1 if body is not None else next(fds))
        return e.Output(index, item_id, num_bytes, self.shelf.put(parcel), num_items)
