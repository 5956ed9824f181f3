"""`InlinePool`: the same interface as `ProcessPool`, in the driver's own process (`num_workers=0`).

Tasks run one at a time when the driver polls, so a debugger stops in the user's code and an exception in a worker that
never ends is not possible. Nothing is packed: what a stage returns is what the next one gets.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.engine import events as e
from gristmill.engine.commands import Assignment
from gristmill.engine.plan import AnyTask, Group
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.worker.group_runner import GroupRunner, JobFailure, JobResult, RunSettings
from gristmill.worker.isolation import Job
from gristmill.worker.memory import own_bytes


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

    def start(self, number: int, group: int, node: int, gpus: tuple[int, ...]) -> None:
        del node  # there is only this one
        plan = self.groups[group]
        runner = GroupRunner(plan, last=group + 1 == len(self.groups), settings=self.settings)
        started = time.perf_counter()
        error = runner.setup(WorkerMetadata(worker_id=f"{plan.name}-{number}", gpu_ids=tuple(map(str, gpus))))
        if error:
            self._events.append(e.WorkerSetupFailed(number, error))
            return
        self._runners[number] = runner
        self._events.append(e.WorkerReady(number, time.perf_counter() - started))

    def drain(self, number: int) -> None:
        self._runners.pop(number).teardown()
        self._events.append(e.WorkerExited(number))

    def kill(self, number: int, reason: str) -> None:
        del reason
        self._runners.pop(number, None)
        self._pending = deque(entry for entry in self._pending if entry[0] != number)

    def send(self, number: int, assignments: list[Assignment]) -> None:
        self._pending.append((number, assignments))

    def recall(self, number: int, tasks: tuple[int, ...]) -> None:
        """Nothing waits behind a running task here that anybody else could have."""

    def grant(self, number: int, task: int) -> None:
        """Emission is not held back here: nothing else runs that could catch up."""

    def flush(self) -> None:
        """Nothing is buffered."""

    def poll(self, timeout: float) -> list[e.Event]:
        if self._pending:
            self._run(*self._pending.popleft())
        elif not self._events and timeout > 0:
            time.sleep(min(timeout, 0.01))
        events, self._events = self._events, []
        return events

    def _run(self, number: int, assignments: list[Assignment]) -> None:
        emitted = [0] * len(assignments)

        def emit(which: int, item_id: str, task: AnyTask) -> None:
            index = emitted[which]
            emitted[which] += 1
            if index >= assignments[which].skip:
                output = e.Output(index, item_id, task.nbytes, self.pack(task))
                self._events.append(e.TaskEmitted(number, assignments[which].task, output))

        tasks = [self._tasks[a.payload] for a in assignments]  # type: ignore[index]  # from `pack`
        jobs = [
            Job(a.item_id, task, a.care, a.attempt, a.condemned, a.cause, a.out_of_patience)
            for a, task in zip(assignments, tasks, strict=True)
        ]
        outcomes = self._runners[number].run(jobs, emit)
        for assignment, outcome, first in zip(assignments, outcomes, emitted, strict=True):
            self._events.append(self._event(number, assignment.task, outcome, first))

    def _event(self, number: int, task: int, outcome: JobResult | JobFailure, first: int) -> e.Event:
        if isinstance(outcome, JobFailure):
            return e.TaskRaised(number, task, outcome.stage, outcome.error, outcome.fault, outcome.divisible)
        outputs = tuple(
            e.Output(first + n, item_id, made.nbytes, self.pack(made))
            for n, (item_id, made) in enumerate(outcome.outputs)
        )
        counts, side, facts = outcome.counts, tuple(outcome.side_files), tuple(outcome.facts)
        return e.TaskFinished(number, task, outputs, outcome.useful_s, counts, side, facts, tuple(outcome.files))

    def describe(self, number: int) -> str:
        return f"worker {number} (in this process)"

    def where(self, number: int) -> str:
        del number
        return ""

    def take_messages(self) -> list[str]:
        return []

    def memory_bytes(self) -> int:
        return own_bytes()
