"""`Lanes`: several calls of one group under way at once in one worker.

    owner's thread                         lanes
    begin(key, jobs)      ────────▶        a coroutine on the worker's event loop, or a thread of its own
    news.get()            ◀────────        Streamed (and waits until it is taken), Stepped, Ended

A group with lanes is one stage (`engine/plan.py`), so what is in a lane is one call of it. An `async` call is a
coroutine from beginning to end: with hundreds of requests a thread for each would cost more than they do. A call that
is handled with care, or takes several tasks, runs in a thread, which waits for the loop where the stage is async. So
does the rest of a call that gave an iterator: its code runs whenever the next task is asked for, and would hold up the
loop.

Only the stage's own code runs in lanes. What it made is entered into the books, packed and sent by the owner, so
nothing of that needs a lock. Threads are daemons: a call that hangs must not keep a process alive that should end.
"""

import copy
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gristmill.engine.commands import Care
from gristmill.engine.plan import AnyTask
from gristmill.errors import StageError
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.context import CURRENT, StageContext
from gristmill.worker.call_books import Item
from gristmill.worker.failing import StageRaised
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.isolation import LeaveCrumb
from gristmill.worker.job import Job, JobFailure, JobResult, Result

if TYPE_CHECKING:
    import asyncio

Outcome = JobResult | JobFailure


@dataclass(slots=True, eq=False)
class Call:
    """A call of an async stage, from `LaneRunner.begin` to `LaneRunner.end`."""

    job: Job
    result: JobResult
    item: Item
    context: StageContext
    made: Result = None
    raised: StageRaised | None = None
    seconds: float = 0.0


class LaneRunner(GroupRunner):
    """A group runner made so that several can work at a time, on the same stages."""

    def in_lane(self, leave_crumb: LeaveCrumb) -> "LaneRunner":
        """A runner of the same stages for one lane: what a call leaves behind in it is the lane's own."""
        if any(self._is_async):
            _ = self.event_loop  # made before the copy: a loop for each lane would split what a stage shares
        own = copy.copy(self)
        own.leave_crumb = leave_crumb
        own._spare = self._spare.another("none")
        own._careful = None
        return own

    def begin(self, job: Job) -> Call:
        """Begin a call of the stage; call `end` when `await_call` is over."""
        result = JobResult((StageCounts(),), attempt=str(job.attempt))
        item = self._first_item(0, job, result, shared=False)
        self.leave_crumb(0, 0, item.task.num_items)
        return Call(job, result, item, self._spare.another(str(job.attempt)))

    async def await_call(self, call: Call) -> None:
        """Have the stage process the task of a call, on the event loop. `end` reports what it raises."""
        CURRENT.set(call.context)  # for this coroutine and whatever it starts
        stage = self.stages[0]
        started = time.perf_counter()
        try:
            call.made = self._one_of(stage, await self.event_loop.call_stage(stage, [call.item.task]))
        except StageRaised as raised:
            call.raised = raised
        except Exception as error:
            call.raised = StageRaised(stage, error)
        finally:
            self._end_if_forked("process", stage)
        call.seconds = time.perf_counter() - started

    def is_told(self, call: Call, done: "asyncio.Task[None]") -> bool:
        """Whether a call that is over is still waited for; one that was stopped from outside has failed."""
        if done.cancelled():
            if self.event_loop.is_closing:
                return False
            got = "the call cancelled"
        elif (error := done.exception()) is not None:
            got = repr(error)
        else:
            return True
        stage = self.stages[0]
        call.raised = StageRaised(stage, StageError(f"{stage.stage_name()}: expected a result or an error; got {got}"))
        return True

    def end(self, call: Call) -> Outcome:
        """Enter what a call gave into the books."""
        result = call.result
        try:
            if call.raised is not None:
                raise call.raised
            self._books.enter_call(0, call.item, call.job, call.made, call.context, result, call.seconds)
            for item in self._children(0, call.item, call.made):
                self._count_written(item, result)
                result.outputs.append((item.item_id, item.task))
            self._books.close(call.job, result, call.context)
        except StageRaised as raised:
            return self._failure(raised, call.job)
        result.useful_s = call.seconds
        return result

    def end_streaming(self, call: Call, made: Iterator[AnyTask], emit: Callable[[int, str, AnyTask], None]) -> Outcome:
        """Draw what a call streams, entering each task into the books as it comes."""
        started = time.perf_counter()
        try:
            self._books.enter_call(0, call.item, call.job, made, call.context, call.result, call.seconds)
            for item, _ in self._follow(0, call.item, made, [call.job], [call.result]):
                self._count_written(item, call.result)
                emit(0, item.item_id, item.task)
            self._books.close(call.job, call.result, call.context)
        except StageRaised as raised:
            return self._failure(raised, call.job)
        call.result.useful_s = call.seconds + time.perf_counter() - started
        return call.result


class Streamed(NamedTuple):
    """A call has made one more task of its job `number`, and waits until that is `taken`."""

    key: Any
    number: int
    item_id: str
    task: AnyTask
    taken: threading.Event


class Stepped(NamedTuple):
    """A call has come a step further: it takes its tasks apart, or its stages have a deadline for each step."""

    key: Any


class Broken(NamedTuple):
    """A thread has ended with what no stage should raise: the worker ends too, or it would go unnoticed."""

    error: BaseException


class Ended(NamedTuple):
    """A call is over. `Lanes.outcomes` tells what became of it, and frees its lane."""

    key: Any
    lane: int
    made: "Call | list[Outcome]"


News = Streamed | Stepped | Ended | Broken


@dataclass(eq=False)
class Lanes:
    """The lanes of one worker. `news` may be a queue that others put into as well; keys are the owner's."""

    runner: LaneRunner
    count: int
    news: "queue.SimpleQueue[Any]"
    leave_crumb: Callable[[int, int, int, int, int], None] = lambda *_: None  # lane, stage, rows from and to, turn
    clear_crumb: Callable[[int], None] = lambda _: None
    step_s: float = 0.02  # between two reports of the steps of a call
    _free: list[int] = field(init=False)
    _runners: dict[int, LaneRunner] = field(default_factory=dict)
    _threads: dict[int, "queue.SimpleQueue[tuple[Any, Sequence[Job] | Call]]"] = field(default_factory=dict)
    _stepping: dict[int, Any] = field(default_factory=dict)  # by lane: the call that reports its steps

    def __post_init__(self) -> None:
        self._free = list(range(self.count - 1, -1, -1))
        self._is_async = self.runner.stages[0].is_async
        self._has_deadline = self.runner.group.deadline_s is not None

    @property
    def has_free(self) -> bool:
        """Whether another call may begin."""
        return bool(self._free)

    @property
    def is_busy(self) -> bool:
        """Whether any call is under way."""
        return len(self._free) < self.count

    def begin(self, key: Any, jobs: Sequence[Job]) -> None:
        """Begin a call; the caller has seen that a lane is free."""
        lane = self._free.pop()
        runner = self._runner(lane)
        if self._is_async and len(jobs) == 1 and jobs[0].care is Care.NORMAL:
            call = runner.begin(jobs[0])
            self.runner.event_loop.soon(self._start, key, lane, call)
        else:
            self._thread(lane).put((key, jobs))

    def outcomes(self, ended: Ended) -> list[Outcome]:
        """What became of the jobs of a call; its lane is free again."""
        made = ended.made
        outcomes = [self._runner(ended.lane).end(made)] if isinstance(made, Call) else made
        self.clear_crumb(ended.lane)
        self._free.append(ended.lane)
        return outcomes

    # On the event loop

    def _start(self, key: Any, lane: int, call: Call) -> None:
        import asyncio

        task = asyncio.ensure_future(self._runner(lane).await_call(call))

        def over(done: "asyncio.Task[None]") -> None:
            if not self._runner(lane).is_told(call, done):
                return
            if call.raised is None and isinstance(call.made, Iterator):
                self._thread(lane).put((key, call))
            else:
                self.news.put(Ended(key, lane, call))

        task.add_done_callback(over)  # the loop keeps no reference to what it runs; the callback does

    # In threads

    def _thread(self, lane: int) -> "queue.SimpleQueue[tuple[Any, Sequence[Job] | Call]]":
        if lane not in self._threads:
            self._threads[lane] = queue.SimpleQueue()
            name = f"gristmill-lane-{lane}"
            threading.Thread(target=self._work, args=(lane, self._threads[lane]), name=name, daemon=True).start()
        return self._threads[lane]

    def _work(self, lane: int, calls: "queue.SimpleQueue[tuple[Any, Sequence[Job] | Call]]") -> None:
        """Run one call after another."""
        runner = self._runner(lane)
        try:
            while True:
                key, given = calls.get()
                emit = self._emitter(key)
                if isinstance(given, Call):
                    outcomes = [runner.end_streaming(given, cast("Iterator[AnyTask]", given.made), emit)]
                else:
                    steps = self._has_deadline or any(job.care is not Care.NORMAL for job in given)
                    self._stepping[lane] = key if steps else None
                    outcomes = runner.run(given, emit)
                    self._stepping[lane] = None
                self.news.put(Ended(key, lane, outcomes))
        finally:
            error = sys.exc_info()[1]
            if error is not None:
                self.news.put(Broken(error))

    def _emitter(self, key: Any) -> Callable[[int, str, AnyTask], None]:
        def emit(number: int, item_id: str, task: AnyTask) -> None:
            taken = threading.Event()
            self.news.put(Streamed(key, number, item_id, task, taken))
            taken.wait()

        return emit

    # Crumbs

    def _runner(self, lane: int) -> LaneRunner:
        if lane not in self._runners:
            self._runners[lane] = self.runner.in_lane(self._leaver(lane))
        return self._runners[lane]

    def _leaver(self, lane: int) -> LeaveCrumb:
        stepped_at = 0.0

        def leave(stage: int, first_row: int, end_row: int, turn: int = 0) -> None:
            nonlocal stepped_at
            self.leave_crumb(lane, stage, first_row, end_row, turn)
            key = self._stepping.get(lane)
            # A deadline is for one call of a stage; taking tasks apart, or having several, makes many: so report them.
            if key is not None and time.perf_counter() - stepped_at > self.step_s:
                stepped_at = time.perf_counter()
                self.news.put(Stepped(key))

        return leave
