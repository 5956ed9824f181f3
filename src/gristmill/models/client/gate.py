"""`Gate`: coroutines wait here until the window lets their request leave. First come, first served.

The rules are `Window`'s, in `retry.py`; this is the clock and the waiting. A gate belongs to one event loop.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable

from gristmill.models.client.retry import Failure, Ticket, Window

Waiter = tuple["asyncio.Future[Ticket]", int]


class Gate:
    """The way out to a server, for all coroutines of a process."""

    def __init__(self, window: Window, shut_error: Callable[[Window], Exception]) -> None:
        self.window = window
        self._shut_error = shut_error
        self._waiting: deque[Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, tokens: int = 0) -> Ticket:
        """Wait for the turn of a request that will use about so many tokens."""
        now = time.monotonic()
        if self.window.is_shut:
            raise self._shut_error(self.window)
        if not self._waiting and self.window.wait_s(now) == 0.0:
            return self.window.begin(now, tokens)
        place: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, tokens))
        self._let_in()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.window.abandoned()  # it had just been let in
                self._let_in()
            raise

    def succeeded(self, ticket: Ticket, tokens: int | None = None) -> None:
        """A request was answered."""
        self.window.succeeded(ticket, tokens)
        self._let_in()

    def failed(self, ticket: Ticket, failure: Failure) -> None:
        """A request came to nothing."""
        self.window.failed(ticket, failure, time.monotonic(), random.random())
        self._let_in()

    def abandoned(self) -> None:
        """Whoever sent a request no longer waits for it."""
        self.window.abandoned()
        self._let_in()

    def _let_in(self) -> None:
        if not self._waiting:
            return
        if self.window.is_shut:
            while self._waiting:
                place, _ = self._waiting.popleft()
                if not place.done():
                    place.set_exception(self._shut_error(self.window))
            return
        now = time.monotonic()
        while self._waiting:
            if self._waiting[0][0].done():  # cancelled
                self._waiting.popleft()
                continue
            wait_s = self.window.wait_s(now)
            if wait_s is None:
                return
            if wait_s > 0.0:
                self._look_again_in(wait_s)
                return
            place, tokens = self._waiting.popleft()
            place.set_result(self.window.begin(now, tokens))

    def _look_again_in(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._let_in)
