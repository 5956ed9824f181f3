"""`InlinePool`: the same interface as `ProcessPool`, in the driver's own process (`num_workers=0`).

Tasks run one at a time when the driver polls, so a debugger stops in the user's code and an exception in a worker that
never ends is not possible. Nothing is packed: what a stage returns is what the next one gets. Calls that overlap do so
here too, on an event loop or in threads of this process.
"""

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.engine import events as e
from gristmill.engine.commands import Assignment
from gristmill.engine.plan import AnyTask, Group
from gristmill.metrics.node_sample import NodeSample
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.worker.group_runner import GroupRunner
from gristmill.worker.job import Job, JobFailure, JobResult, RunSettings
from gristmill.worker.lanes import Broken, LaneRunner, Lanes, News, Stepped, Streamed
from gristmill.worker.machine import NodeSampler, own_bytes


@dataclass(eq=False, slots=True)
class _Call:
    """A call under way, and how many tasks each of its jobs has streamed."""

    worker: int
    assignments: list[Assignment]
    emitted: list[int]


@dataclass
class InlinePool:
    """Workers that are objects."""

    groups: tuple[Group, ...]
    settings: RunSettings
    _runners: dict[int, GroupRunner] = field(default_factory=dict)
    _pending: deque[tuple[int, list[Assignment]]] = field(default_factory=deque)
    _events: list[e.Event] = field(default_factory=list)
    _tasks: dict[int, AnyTask] = field(default_factory=dict)
    _next_task: int = 0
    _sampler: NodeSampler = field(default_factory=NodeSampler)
    _news: "queue.SimpleQueue[News]" = field(default_factory=queue.SimpleQueue)
    _lanes: dict[int, Lanes] = field(default_factory=dict)  # by worker, of groups whose calls overlap
    _waiting: dict[int, deque[list[Assignment]]] = field(default_factory=dict)  # calls without a lane, by worker
    _draining: set[int] = field(default_factory=set)

    def pack(self, task: AnyTask) -> int:
        """Keep a task where it is; return the number by which it is known from now on."""
        number = self._next_task
        self._next_task = number + 1
        self._tasks[number] = task
        return number

    def release(self, payload: int) -> None:
        del self._tasks[payload]

    def keep(self, payload: int) -> Callable[[], AnyTask]:
        task = self._tasks.pop(payload)
        return lambda: task

    def open(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        for runner in self._runners.values():
            runner.teardown()
        self._runners.clear()
        self._lanes.clear()

    def start(self, number: int, group: int, node: int, gpus: tuple[int, ...], learnt: e.Learnt = ()) -> None:
        del node  # there is only this one
        plan = self.groups[group]
        last = group + 1 == len(self.groups)
        runner = (LaneRunner if plan.lanes > 1 else GroupRunner)(plan, last=last, settings=self.settings)
        started = time.perf_counter()
        name, gpu_ids = f"{plan.name}-{number}", tuple(map(str, gpus))
        error = runner.setup(WorkerMetadata(worker_id=name, gpu_ids=gpu_ids, learnt=dict(learnt)))
        if error:
            self._events.append(e.WorkerSetupFailed(number, error))
            return
        self._runners[number] = runner
        if isinstance(runner, LaneRunner):
            self._lanes[number] = Lanes(runner, plan.lanes, self._news)
            self._waiting[number] = deque()
        self._events.append(e.WorkerReady(number, time.perf_counter() - started))

    def drain(self, number: int) -> None:
        if number in self._lanes and (self._waiting[number] or self._lanes[number].is_busy):
            self._draining.add(number)
        else:
            self._leave(number)

    def _leave(self, number: int) -> None:
        self._lanes.pop(number, None)
        self._draining.discard(number)
        self._runners.pop(number).teardown()
        self._events.append(e.WorkerExited(number))

    def kill(self, number: int, reason: str) -> None:
        runner = self._runners.pop(number, None)
        if self._lanes.pop(number, None) is not None and runner is not None:
            # This process cannot be ended: overdue calls are cancelled, or left behind in their threads.
            self._draining.discard(number)
            runner.event_loop.close()
            self._events.append(e.WorkerLost(number, reason))
        self._pending = deque(entry for entry in self._pending if entry[0] != number)

    def send(self, number: int, assignments: list[Assignment]) -> None:
        if number in self._lanes:
            self._waiting[number].append(assignments)
            self._fill(number)
        else:
            self._pending.append((number, assignments))

    def recall(self, number: int, tasks: tuple[int, ...]) -> None:
        """Skip tasks that wait behind those in lanes; without lanes, none wait here that another could have."""
        if number in self._lanes:
            left = ([a for a in call if a.task not in tasks] for call in self._waiting[number])
            self._waiting[number] = deque(call for call in left if call)

    def grant(self, number: int, task: int) -> None:
        """Emission is not held back here: nothing else runs that could catch up."""

    def flush(self) -> None:
        """Nothing is buffered."""

    def poll(self, timeout: float) -> list[e.Event]:
        if self._pending:
            self._run(*self._pending.popleft())
            timeout = 0.0
        elif self._events:
            timeout = 0.0
        if any(lanes.is_busy for lanes in self._lanes.values()):
            self._hear_lanes(timeout)
        elif timeout > 0:
            time.sleep(min(timeout, 0.01))
        events, self._events = self._events, []
        return events

    def _run(self, number: int, assignments: list[Assignment]) -> None:
        call = _Call(number, assignments, [0] * len(assignments))

        def emit(which: int, item_id: str, task: AnyTask) -> None:
            self._emit(call, which, item_id, task)

        self._take(call, self._runners[number].run(self._jobs(assignments), emit))

    def _jobs(self, assignments: list[Assignment]) -> list[Job]:
        tasks = [self._tasks[a.payload] for a in assignments]  # type: ignore[index]  # from `pack`
        return [
            Job(a.item_id, task, a.care, a.attempt, a.condemned, a.cause, a.out_of_patience, a.step_from)
            for a, task in zip(assignments, tasks, strict=True)
        ]

    def _emit(self, call: "_Call", which: int, item_id: str, task: AnyTask) -> None:
        index = call.emitted[which]
        call.emitted[which] += 1
        if index >= call.assignments[which].skip:
            output = e.Output(index, item_id, task.nbytes, self.pack(task), task.num_items)
            self._events.append(e.TaskEmitted(call.worker, call.assignments[which].task, output))

    def _take(self, call: "_Call", outcomes: list[JobResult | JobFailure]) -> None:
        for assignment, outcome, first in zip(call.assignments, outcomes, call.emitted, strict=True):
            self._events.append(self._event(call.worker, assignment.task, outcome, first))

    # Lanes

    def _fill(self, number: int) -> None:
        lanes, waiting = self._lanes[number], self._waiting[number]
        while waiting and lanes.has_free:
            assignments = waiting.popleft()
            lanes.begin(_Call(number, assignments, [0] * len(assignments)), self._jobs(assignments))

    def _hear_lanes(self, timeout: float) -> None:
        """Wait for the first call that has something to say, and take what others have said so far."""
        with contextlib.suppress(queue.Empty):
            self._hear(self._news.get(timeout=timeout) if timeout > 0 else self._news.get_nowait())
            while True:
                self._hear(self._news.get_nowait())

    def _hear(self, news: News) -> None:
        if isinstance(news, Broken):
            raise news.error
        call: _Call = news.key
        lanes = self._lanes.get(call.worker)
        if lanes is None:
            return  # its worker was given up
        if isinstance(news, Streamed):
            self._emit(call, news.number, news.item_id, news.task)
            news.taken.set()
        elif isinstance(news, Stepped):
            self._events.append(e.TaskStepped(call.worker, call.assignments[0].task))
        else:
            self._take(call, lanes.outcomes(news))
            self._fill(call.worker)
            if call.worker in self._draining and not lanes.is_busy:
                self._leave(call.worker)

    def _event(self, number: int, task: int, outcome: JobResult | JobFailure, first: int) -> e.Event:
        if isinstance(outcome, JobFailure):
            return e.TaskRaised(number, task, outcome.stage, outcome.error, outcome.fault, outcome.divisible)
        outputs = tuple(
            e.Output(first + n, item_id, made.nbytes, self.pack(made), made.num_items)
            for n, (item_id, made) in enumerate(outcome.outputs)
        )
        counts, side, facts = outcome.counts, tuple(outcome.side_files), tuple(outcome.facts)
        files, learnt = tuple(outcome.files), tuple(outcome.learnt.items())
        return e.TaskFinished(number, task, outputs, outcome.useful_s, counts, side, facts, files, learnt)

    def describe(self, number: int) -> str:
        return f"worker {number} (in this process)"

    def where(self, number: int) -> str:
        del number
        return ""

    def take_messages(self) -> list[str]:
        return []

    def memory_bytes(self) -> int:
        return own_bytes()

    def samples(self) -> list[NodeSample]:
        """This machine, as it was at most a few seconds ago."""
        return [self._sampler.latest()]
