"""The one event loop of a worker, on which `async def process` runs.

It runs in a thread of its own, so that a call can wait for it as for anything else, and a worker with lanes has as many
coroutines on it as lanes. A worker that needs none has none: the thread starts with the first coroutine.

A call that is overdue is cancelled here, where it happens, and not by the driver: that costs no message and hits this
call alone. A coroutine that ignores this, or keeps the loop from running, is left to the driver, which ends the
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

CLOSE_S = 1.0  # for cancelled coroutines to end


class EventLoop:
    """A loop in a thread, shared by everything in a worker: what is bound to a loop works in every call of a stage."""

    def __init__(self) -> None:
        self._starting = threading.Lock()  # the first coroutines may come from several threads at once
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.is_closing = False  # from then on nothing waits for what is cancelled

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and wait for what it gives or raises."""
        return self.submit(coroutine).result()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        """Start a coroutine; it sees the context variables of its caller."""
        try:
            loop = self._started()
        except RuntimeError:
            coroutine.close()  # it will never run, and Python would warn of that
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function on the loop. The coroutines it starts see the context variables of the caller."""
        self._started().call_soon_threadsafe(function, *arguments)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self.is_closing:
                raise RuntimeError("the event loop of this worker is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_turn, args=(self._loop,), name="gristmill-loop", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """Cancel what is left and end the thread; one that does not end is left behind, and goes with the process."""
        with self._starting:
            if self.is_closing:
                return
            self.is_closing = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_S)
        if not thread.is_alive():
            loop.close()

    async def call_stage(self, stage: AnyStage, tasks: Sequence[AnyTask]) -> Any:
        """Return what `process_batch` gives, once it is all there, or raise DeadlineExceeded at the stage's deadline.

        A call that ends cancelled has failed like any other, whatever cancelled it: only when the loop is being closed
        is there nothing left to tell.
        """
        try:
            return await _call_in_time(stage, tasks)
        except asyncio.CancelledError:
            if self.is_closing:
                raise
            raise StageError(f"{stage.stage_name()}: the call, or what it waited for, was cancelled") from None


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run until the loop is stopped. What sys.exit() ends is the task that calls it, and no other call."""
    asyncio.set_event_loop(loop)
    while True:
        try:
            loop.run_forever()
            return
        except (SystemExit, KeyboardInterrupt):
            continue  # asyncio has passed it on to what awaits that task, and stopped the loop


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _call_in_time(stage: AnyStage, tasks: Sequence[AnyTask]) -> Any:
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
    try:
        given: Any = stage.process_batch(tasks)
        if inspect.isawaitable(given):
            given = await given
        made = []
        for number, output in enumerate(given):
            try:
                made.append(await output if inspect.isawaitable(output) else output)
            except BaseException:
                _abandon(given[number + 1 :])
                raise
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # sys.exit() and the like, which no caller of a coroutine expects
        raise StageError(f"{stage.stage_name()}: expected a result or an error; got {error!r}") from error
    return made


def _abandon(coroutines: Sequence[Any]) -> None:
    for coroutine in coroutines:
        if inspect.iscoroutine(coroutine):
            coroutine.close()  # it will never run, and Python would warn of that
