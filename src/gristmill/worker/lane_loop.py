"""The loop of a worker whose calls overlap: `WorkerLoop` with lanes, instead of one call after another.

Everything that happens arrives in one queue: what the driver says, read by a thread of its own, and what the lanes have
done. Calls begin in the order they came, whenever a lane is free: the scheduler relies on that (`engine/state.py`).
"""

import os
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from gristmill.worker.channel import ChannelClosed, Message
from gristmill.worker.crumbs import CRUMB, NO_CRUMB
from gristmill.worker.lanes import Broken, Ended, LaneRunner, Lanes, Stepped, Streamed
from gristmill.worker.loop import HOLD_S, STEP_S, WorkerLoop
from gristmill.worker.wire import Parcel


class Heard(NamedTuple):
    """The driver has said something; `messages` is None if it is gone."""

    messages: list[tuple[Message, list[int]]] | None


@dataclass(eq=False)
class LaneCall:
    """A call under way: what was sent, and how many tasks each of its jobs has streamed."""

    wires: list[Message]
    emitted: list[int]


class LaneLoop(WorkerLoop):
    """A worker with several calls under way."""

    runner_type = LaneRunner

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        runner = cast("LaneRunner", self.runner)  # by runner_type
        self._news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._aside: deque[Any] = deque()  # what came while waiting for the driver alone
        self._lanes = Lanes(
            runner, runner.group.lanes, self._news, self._leave_lane_crumb, self._clear_crumb, step_s=STEP_S
        )

    def run(self) -> None:
        threading.Thread(target=self._listen, name="gristmill-listener", daemon=True).start()
        while True:
            while self.calls and self._lanes.has_free:
                self._begin(self.calls.popleft())
            if self.draining and not self.calls and not self._lanes.is_busy:
                self._flush()
                self.runner.teardown()
                self.channel.send([("drained",)])
                return
            self._handle(self._next())

    def _listen(self) -> None:
        try:
            while True:
                self._news.put(Heard(self.channel.receive()))
        except ChannelClosed:
            self._news.put(Heard(None))
        except Exception as error:  # whatever it is: the worker would wait for messages that nothing reads any more
            self._news.put(Broken(error))

    def _next(self) -> Any:
        """What comes next. Results are held back for a moment, so that those that come together are sent together."""
        if self._aside:
            return self._aside.popleft()
        if self._results and not self._fds:
            left_s = HOLD_S - (time.perf_counter() - self._sent_at)
            try:
                return self._news.get(timeout=left_s) if left_s > 0 else self._news.get_nowait()
            except queue.Empty:
                pass
        self._flush()
        return self._news.get()

    def _handle(self, news: Any) -> None:
        if isinstance(news, Ended):
            call: LaneCall = news.key
            outcomes = self._lanes.outcomes(news)
            for wire, outcome, index in zip(call.wires, outcomes, call.emitted, strict=True):
                self._tell(wire, outcome, index)
        elif isinstance(news, Heard):
            self._take(self._heard(news))
        elif isinstance(news, Streamed):
            call = news.key
            self._emit(call.wires[news.number], call.emitted[news.number], news.item_id, news.task)
            call.emitted[news.number] += 1
            news.taken.set()
        elif isinstance(news, Stepped):
            self._results.append(("stepped", news.key.wires[0][0]))
        elif isinstance(news, Broken):
            raise news.error

    @staticmethod
    def _heard(news: Heard) -> list[tuple[Message, list[int]]]:
        if news.messages is None:
            raise ChannelClosed
        return news.messages

    def _receive(self) -> list[tuple[Message, list[int]]]:
        while not isinstance(news := self._news.get(), Heard):
            if isinstance(news, Broken):
                raise news.error
            self._aside.append(news)
        return self._heard(news)

    def _begin(self, sent: list[tuple[Message, Parcel]]) -> None:
        kept, jobs = self._unpacked(sent)
        if jobs:
            self._lanes.begin(LaneCall([wire for wire, _ in kept], [0] * len(kept)), jobs)

    # Crumbs

    def _leave_lane_crumb(self, lane: int, stage: int, first_row: int, end_row: int, turn: int) -> None:
        if self.own_fd >= 0:
            os.fstat(self.own_fd)  # a stage that closed it ends the worker here, while a crumb still names that stage
        CRUMB.pack_into(self.crumbs, lane * CRUMB.size, 0, stage, first_row, end_row, turn)

    def _clear_crumb(self, lane: int) -> None:
        self.crumbs[lane * CRUMB.size : (lane + 1) * CRUMB.size] = NO_CRUMB
