"""`Hearing`: what one worker says, as events. The same for a process behind a socket and for an actor of a cluster."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from gristmill.engine import events as e
from gristmill.worker.channel import Message
from gristmill.worker.parcel_shelf import ParcelShelf
from gristmill.worker.wire import Parcel, counts_from_wire

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
