"""The one event loop of a worker, on which `async def process` runs.

It turns in a thread of its own, so that a call may wait for it like for anything else, and a worker with lanes has as
many coroutines on it as lanes. Whoever needs none has none: the thread starts with the first coroutine.

A call that is overdue is cancelled here, where it happens, and not by the driver: that costs no message and hits this
call alone. A coroutine that does not heed it, or keeps the loop from turning, is the driver's affair: it ends the
process.
"""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import DeadlineExceeded, StageError

if TYPE_CHECKING:
    from concurrent.futures import Future

CLOSE_S = 1.0  # for coroutines that were cancelled to end


class EventLoop:
    """A loop in a thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and wait for what it gives or raises."""
        return self.submit(coroutine).result()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Start a coroutine; it sees the context variables of whoever starts it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._started())

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on the loop. The coroutines it starts see the context variables of whoever asks."""
        self._started().call_soon_threadsafe(function, *arguments)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._turn, name="gristmill-loop", daemon=True)
            self._thread.start()
        return self._loop

    def _turn(self) -> None:
        loop = self._started()
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def close(self) -> None:
        """Cancel what is left and end the thread; one that does not end is left behind, and goes with the process."""
        if self._loop is None or self._thread is None:
            return
        with contextlib.suppress(TimeoutError):
            self.submit(_cancel_all()).result(CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()
        self._loop = self._thread = None


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def call_stage(stage: AnyStage, tasks: Sequence[AnyTask]) -> Any:
    """Give what `process_batch` gives, when all of it is there, or raise DeadlineExceeded at the stage's deadline."""
    if stage.deadline_s is None:
        return await _call(stage, tasks)
    try:
        async with asyncio.timeout(stage.deadline_s) as scope:
            return await _call(stage, tasks)
    except TimeoutError:
        if not scope.expired():
            raise  # the stage's own
        words = f"{stage.stage_name()}: no result within the deadline of {stage.deadline_s:g} s"
        raise DeadlineExceeded(words) from None


async def _call(stage: AnyStage, tasks: Sequence[AnyTask]) -> Any:
    given: Any = stage.process_batch(tasks)
    try:
        if inspect.isawaitable(given):
            given = await given
        made = []
        for number, output in enumerate(given):
            try:
                made.append(await output if inspect.isawaitable(output) else output)
            except BaseException:
                _abandon(given[number + 1 :])
                raise
    except (SystemExit, KeyboardInterrupt) as error:  # would end the loop, and with it every other call
        raise StageError(f"{stage.stage_name()}: expected a result or an error; got {error!r}") from None
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        # Something the stage waited for was cancelled, and not the call: an error like any other.
        raise StageError(f"{stage.stage_name()}: what it waited for was cancelled") from None
    return made


def _abandon(coroutines: Sequence[Any]) -> None:
    for coroutine in coroutines:
        if inspect.iscoroutine(coroutine):
            coroutine.close()  # it will never run, and Python would warn of that
