"""`Posting`: what a driver says to a worker, in the words of `loop.py`. How it gets there is the pool's."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from gristmill.engine.commands import Assignment
from gristmill.worker.parcel_shelf import ParcelShelf


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
