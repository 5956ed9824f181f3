"""The workers of one group, filed by how much they hold. No other file may change a worker's state.

A step of the scheduler must not cost more because there are more workers. So nothing here looks at all of them: counts
are kept as workers change, and the least loaded is on the lowest shelf that is not empty. A shelf has a box for every
machine, because a task goes to the machine its data is on if it can. In a box the one that has been there longest comes
first.

A worker takes its calls in the order they were sent. Of a group with one lane it runs the first; of a group with more,
as many as there are lanes, and whenever one is over the next in line begins. Nothing is said when a call begins: the
same rule, applied here to the same messages, tells which are running and since when.
"""

import itertools
from collections import OrderedDict, deque
from collections.abc import Iterator
from enum import Enum

import msgspec

from gristmill.engine.commands import EMIT_CREDITS
from gristmill.engine.task_state import TaskRecord

WorkerState = Enum("WorkerState", "STARTING READY DRAINING")

NO_SHELF = -1


class Call(msgspec.Struct, eq=False):
    """Tasks a worker takes together, and since when if it has begun. Its number is that of its first task."""

    number: int
    tasks: list[TaskRecord]
    since: float = 0.0


class WorkerRecord(msgspec.Struct, eq=False):
    """One worker. `assigned` is what it holds, in the order it was sent; `running` and `behind` are the same by call.

    Those that run are in the order they began, so the first has been running for longest.
    """

    id: int
    group: int
    node: int
    gpus: tuple[tuple[int, int], ...]  # (gpu, units)
    state: WorkerState = WorkerState.STARTING
    assigned: dict[int, TaskRecord] = msgspec.field(default_factory=dict)
    running: dict[int, Call] = msgspec.field(default_factory=dict)
    behind: deque[Call] = msgspec.field(default_factory=deque)  # wait for a lane, the next in line first
    overdue: set[int] = msgspec.field(default_factory=set)  # calls for which it was killed
    keeps_to_itself: bool = False  # what it holds is to run alone, in one lane
    ungranted: list[int] = msgspec.field(
        default_factory=list
    )  # the task of every output the next group has not taken up
    ready_at: float = 0.0
    idle_since: float = 0.0
    running_since: float = 0.0  # when it last began to work, or was through with a task
    state_since: float = 0.0  # when it began to start, or to drain
    warned_at: float = 0.0  # after so long at what it is doing now
    rss_bytes: int = 0
    tasks_done: int = 0
    replaces: int | None = None
    recalled: bool = False  # it was told to skip a task, and may be busy with it all the same
    shadow: tuple[int, TaskRecord] | None = None  # what it runs that has been given to another as well, by its number
    shelf: int = NO_SHELF  # where the crew has filed it
    counts_as_busy: bool = False
    counts_as_stalled: bool = False
    counts_lanes: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether it has something to do."""
        return bool(self.assigned) or self.shadow is not None

    @property
    def may_linger(self) -> bool:
        """Whether it should be about to end and may be held up by a task that is no longer its own."""
        return self.recalled and self.state is WorkerState.DRAINING

    # Calls

    def give(self, tasks: list[TaskRecord]) -> None:
        """It was sent one more call."""
        number = tasks[0].id
        self.behind.append(Call(number, tasks))
        for task in tasks:
            task.call = number
            self.assigned[task.id] = task

    def take(self, task: TaskRecord, *, now: float | None = None) -> None:
        """A task is no longer its own; `now`, if that is because it is done: what is left of the call goes on anew."""
        del self.assigned[task.id]
        call = self.running.get(task.call)
        if call is None:
            self._take_from_behind(task)
        elif len(call.tasks) == 1:
            del self.running[task.call]
            if self.overdue:
                self.overdue.discard(task.call)
        else:
            call.tasks.remove(task)
            if now is not None:
                self.begin_anew(call, now)
        if not self.assigned:
            self.keeps_to_itself = False

    def _take_from_behind(self, task: TaskRecord) -> None:
        # It is taken for others, who get what would be done last.
        call = next(call for call in reversed(self.behind) if call.number == task.call)
        call.tasks.remove(task)
        if not call.tasks:
            self.behind.remove(call)

    def begin_anew(self, call: Call, now: float) -> None:
        """A call that is running has come a step further."""
        if call.number in self.running:
            del self.running[call.number]
            call.since = now
            self.running[call.number] = call

    def begin(self, lanes: int, now: float) -> None:
        """Let the next calls in line begin, while there are lanes for them."""
        while self.behind and len(self.running) < lanes:
            call = self.behind.popleft()
            call.since = now
            self.running[call.number] = call

    def began(self, task: TaskRecord) -> float:
        """Since when one of its tasks has been running."""
        call = self.running.get(task.call)
        return self.running_since if call is None else call.since

    @property
    def oldest_since(self) -> float:
        """Since when the call has been running that began first; since the last news of it, if it runs none."""
        return next((call.since for call in self.running.values()), self.running_since)

    def suspects(self) -> list[TaskRecord]:
        """What may be to blame for its end: the first task of every call under way, or of those it was killed for."""
        calls = [call for call in self.running.values() if call.number in self.overdue] or self.running.values()
        return [call.tasks[0] for call in calls]

    @property
    def is_stalled(self) -> bool:
        """Whether it can do nothing before an output of its running task has been taken up by the next group."""
        return len(self.ungranted) >= EMIT_CREDITS


Box = OrderedDict[int, WorkerRecord]


class Crew:
    """The workers of one group. Whoever changes what a worker holds calls `refile`."""

    def __init__(self, *, lanes: int = 1, batch_size: int = 1, by_calls: bool = False) -> None:
        self.lanes = lanes
        self._by_calls = by_calls  # where calls differ in how many tasks they hold, a load is counted in calls
        self._open_below = (lanes - 1) * batch_size  # holding no more than so many tasks, a worker has a free lane
        self.lanes_used = 0  # of all workers; where there is one lane a worker, nobody counts
        self.workers: dict[int, WorkerRecord] = {}
        self.waiting: dict[int, WorkerRecord] = {}  # those with outputs that are not granted, in the order they came
        self.num_ready = 0
        self.num_staying = 0  # all but the draining
        self.num_busy = 0  # hold a task
        self.num_stalled = 0  # hold a task and are stalled
        self.num_idle = 0  # ready, and hold none
        self.num_open = 0  # ready, and have a free lane
        # By number of tasks, then by machine: ready workers that can take more.
        self._shelves: list[OrderedDict[int, Box]] = []
        self._lowest = 0  # no shelf below is in use

    def add(self, worker: WorkerRecord) -> None:
        """A worker is starting."""
        self.workers[worker.id] = worker
        self.num_staying += 1

    def make_ready(self, worker: WorkerRecord) -> None:
        """A worker has finished its set-up."""
        worker.state = WorkerState.READY
        self.num_ready += 1
        self.refile(worker)

    def drain(self, worker: WorkerRecord) -> None:
        """A worker gets nothing more."""
        self._stop_counting(worker)
        worker.state = WorkerState.DRAINING
        self.refile(worker)

    def remove(self, worker: WorkerRecord) -> None:
        """A worker has ended, and what it held has been taken back."""
        self._stop_counting(worker)
        worker.state = WorkerState.DRAINING
        worker.ungranted.clear()
        worker.shadow = None
        self.refile(worker)
        self.waiting.pop(worker.id, None)
        del self.workers[worker.id]

    def _stop_counting(self, worker: WorkerRecord) -> None:
        self.num_ready -= worker.state is WorkerState.READY
        self.num_staying -= worker.state is not WorkerState.DRAINING

    def load(self, worker: WorkerRecord) -> int:
        """How much a worker holds, in what workers are compared by."""
        return len(worker.running) + len(worker.behind) if self._by_calls else len(worker.assigned)

    def refile(self, worker: WorkerRecord) -> None:
        """Count a worker and put it where it belongs, after what it holds has changed."""
        busy = worker.is_busy
        stalled = busy and worker.is_stalled
        self.num_busy += busy - worker.counts_as_busy
        self.num_stalled += stalled - worker.counts_as_stalled
        worker.counts_as_busy, worker.counts_as_stalled = busy, stalled
        shelf = self.load(worker) if worker.state is WorkerState.READY and not stalled else NO_SHELF
        if self.lanes > 1:
            used = min(self.lanes, len(worker.running) + (worker.shadow is not None))
            self.lanes_used += used - worker.counts_lanes
            worker.counts_lanes = used
            if worker.keeps_to_itself:
                shelf = NO_SHELF
        if shelf == worker.shelf:
            return
        self.num_idle += (shelf == 0) - (worker.shelf == 0)
        self.num_open += (0 <= shelf <= self._open_below) - (0 <= worker.shelf <= self._open_below)
        if worker.shelf != NO_SHELF:
            boxes = self._shelves[worker.shelf]
            del boxes[worker.node][worker.id]
            if not boxes[worker.node]:
                del boxes[worker.node]
        worker.shelf = shelf
        if shelf != NO_SHELF:
            while len(self._shelves) <= shelf:
                self._shelves.append(OrderedDict())
            self._shelves[shelf].setdefault(worker.node, OrderedDict())[worker.id] = worker
            self._lowest = min(self._lowest, shelf)

    def least_loaded(self, *, below: int, avoid: int = -1, near: int | None = None) -> Iterator[WorkerRecord]:
        """The worker that holds the fewest tasks, fewer than `below`; then, machine by machine, who could replace it.

        Of several the one on the machine `near`; `avoid` only if there is no other. Whoever does not take the first has
        found its machine full, and goes on: one pass over the machines, and no other of the same one. Nobody's load may
        change meanwhile.
        """
        shelves = self._shelves
        while self._lowest < len(shelves) and not shelves[self._lowest]:
            self._lowest += 1
        last_resort = None
        full: set[int] = set()
        for shelf in shelves[self._lowest : below]:
            here = shelf.get(near) if near is not None else None
            for box in shelf.values() if here is None else itertools.chain([here], shelf.values()):
                for number, worker in box.items():
                    if worker.node in full:
                        break
                    if number != avoid:
                        full.add(worker.node)
                        yield worker
                        break
                    last_resort = worker
        if last_resort is not None and last_resort.node not in full:
            yield last_resort

    def most_loaded(self, *, above: int) -> WorkerRecord | None:
        """Of the workers that hold the most tasks, more than `above`, the one that has run its task for longest."""
        for shelf in reversed(self._shelves[above + 1 :]):
            if shelf:
                longest_here = (next(iter(box.values())) for box in shelf.values())
                return min(longest_here, key=lambda worker: worker.running_since)
        return None

    def filed(self) -> dict[int, int]:
        """The workers that can take more, and what each holds: what `least_loaded` chooses from."""
        shelves = enumerate(self._shelves)
        return {number: load for load, shelf in shelves for box in shelf.values() for number in box}

    # Streaming

    def emitted(self, worker: WorkerRecord, task: int) -> None:
        """A worker waits for one more grant."""
        worker.ungranted.append(task)
        self.waiting[worker.id] = worker
        self.refile(worker)

    def forget_outputs(self, worker: WorkerRecord, task: int) -> None:
        """A task is over: nobody waits for its grants any more."""
        if worker.ungranted:
            worker.ungranted = [other for other in worker.ungranted if other != task]
            if not worker.ungranted:
                del self.waiting[worker.id]

    def take_waiting(self) -> list[tuple[int, int]]:
        """All (worker, task) that wait for a grant, which they now get."""
        granted = [(worker.id, task) for worker in self.waiting.values() for task in worker.ungranted]
        waiting, self.waiting = self.waiting, {}
        for worker in waiting.values():
            worker.ungranted.clear()
            self.refile(worker)
        return granted
