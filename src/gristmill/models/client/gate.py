"""`Gate`: coroutines wait here until the window lets their request leave. First come, first served.

The rules are `Window`'s, in `retry.py`; this is the clock and the waiting. A gate belongs to one event loop, like all
that a client has under way there (`Live`).
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from gristmill.errors import SpendingLimit
from gristmill.models.client.retry import NO_LOAD, Failure, Load, Ticket, Window
from gristmill.models.client.transport import Transport
from gristmill.models.client.usage import Reply

Waiter = tuple["asyncio.Future[Ticket]", Load]


class Gate:
    """The way out to a server, for all coroutines of a process."""

    def __init__(self, window: Window, shut_error: Callable[[Window], Exception]) -> None:
        self.window = window
        self._shut_error = shut_error
        self._waiting: deque[Waiter] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self, load: Load = NO_LOAD) -> Ticket:
        """Wait for the turn of a request that will use about `load`."""
        now = time.monotonic()
        if not self._waiting and not self._is_closed_to(load) and self.window.wait_s(now, load) == 0.0:
            return self.window.begin(now, load)
        place: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, load))
        self._let_in()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.abandoned(place.result())  # it had just been let in
            raise

    def succeeded(self, ticket: Ticket, used: Load | None = None) -> None:
        """A request was answered."""
        self.window.succeeded(ticket, used)
        self._let_in()

    def failed(self, ticket: Ticket, failure: Failure) -> None:
        """A request came to nothing."""
        self.window.failed(ticket, failure, time.monotonic(), random.random())
        self._let_in()

    def abandoned(self, ticket: Ticket) -> None:
        """The sender of a request no longer waits for it."""
        self.window.abandoned(ticket)
        self._let_in()

    def close(self) -> None:
        """Let no more requests in."""
        if self._timer is not None:
            self._timer.cancel()
        for place, _ in self._waiting:
            place.cancel()
        self._waiting.clear()

    def _is_closed_to(self, load: Load) -> bool:
        return self.window.is_shut or self.window.is_spent(load)

    def _let_in(self) -> None:
        now = time.monotonic()
        while self._waiting:
            place, load = self._waiting[0]
            if place.done():  # cancelled
                self._waiting.popleft()
            elif self._is_closed_to(load):
                self._waiting.popleft()
                place.set_exception(self._error())
            else:
                wait_s = self.window.wait_s(now, load)
                if wait_s is None:
                    return
                if wait_s > 0.0:
                    self._look_again_in(wait_s)
                    return
                self._waiting.popleft()
                place.set_result(self.window.begin(now, load))

    def _error(self) -> Exception:
        budget = self.window.budget
        if self.window.is_shut or budget is None:
            return self._shut_error(self.window)
        return SpendingLimit(
            f"max_total_cost: expected the next request to fit into {budget.limit:g}; {budget.spent:.6g} is spent. "
            "Every answer is kept: run the same command with a higher limit to continue"
        )

    def _look_again_in(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._let_in)


class Live:
    """What all calls of a client share while an event loop runs: connections, the gate, what is under way."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, gate: Gate, transport: Transport, headers: dict[str, str]
    ) -> None:
        self.loop = loop
        self.gate = gate
        self.transport = transport
        self.headers = headers
        self.under_way: dict[bytes, asyncio.Task[Reply]] = {}

    def begin(self, key: bytes, question: Coroutine[Any, Any, Reply]) -> "asyncio.Task[Reply]":
        """Start a separate task for a question; the same question, asked while it is under way, finds it."""
        task = self.under_way[key] = self.loop.create_task(question)
        task.add_done_callback(lambda done: self._forget(key, done))
        return task

    def _forget(self, key: bytes, done: "asyncio.Task[Reply]") -> None:
        self.under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # any waiter has got it; if none is left, asyncio must not log it

    async def close(self) -> None:
        """Give up what is under way and close the connections; from any event loop."""
        if self.loop is asyncio.get_running_loop():
            await self._close()
        elif self.loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close(), self.loop))

    async def _close(self) -> None:
        self.gate.close()
        for task in list(self.under_way.values()):
            task.cancel()
        await self.transport.close()
