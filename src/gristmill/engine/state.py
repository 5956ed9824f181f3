"""The scheduler's memory: groups, roots and nodes. Plain records; the scheduler alone changes them.

Ids are integers counted up from 0 and maps keep insertion order, so the same events give the same commands in every
process and under every hash seed.
"""

import itertools
from collections import OrderedDict, deque
from collections.abc import Iterator
from enum import Enum, IntEnum

import msgspec

from gristmill.engine.commands import EMIT_CREDITS
from gristmill.engine.events import Fact, Output
from gristmill.engine.plan import Group
from gristmill.engine.policies.packing import UNITS, Room, cpu_units, share_of_gpu
from gristmill.engine.policies.rates import GroupBook, Prior, Rate
from gristmill.engine.policies.retry import FRESH, Trial
from gristmill.errors import EngineBug
from gristmill.metrics.pace import Latency
from gristmill.metrics.snapshot import StageCounts
from gristmill.stages.resources import Resources
from gristmill.tasks import StagedFile

# The life of one task in one group. No other file may change a task's state.
#
#              SENT                FINISHED
#     QUEUED ─────────▶ ASSIGNED ───────────▶ DONE
#        ▲                 │
#        └─────────────────┘ RAISED, WORKER_LOST, RECALLED
#
# There is no failed state: a task that keeps failing is handled with more and more care (`policies/retry.py`), and at
# the last step its documents are quarantined, which finishes it. So every task ends in DONE, and nothing is lost in
# silence.

# IntEnum because an Enum's hash is computed in Python, and every task changes state twice in every stage.
State = IntEnum("State", "QUEUED ASSIGNED DONE")
Change = IntEnum("Change", "SENT FINISHED RAISED WORKER_LOST RECALLED")

TRANSITIONS: dict[tuple[State, Change], State] = {
    (State.QUEUED, Change.SENT): State.ASSIGNED,
    (State.ASSIGNED, Change.FINISHED): State.DONE,
    (State.ASSIGNED, Change.RAISED): State.QUEUED,
    (State.ASSIGNED, Change.WORKER_LOST): State.QUEUED,
    (State.ASSIGNED, Change.RECALLED): State.QUEUED,
}


class TaskRecord(msgspec.Struct, eq=False):
    """One task in one group. `id` is new for every attempt; `item_id` is what stays."""

    id: int
    root: int
    group: int
    item_id: str
    num_bytes: int
    payload: object
    queued_at: float
    state: State = State.QUEUED
    trial: Trial = FRESH
    received: int = 0  # outputs taken over so far; a streaming task that is done again repeats them
    num_items: int = 1
    call: int = -1  # which call of its worker it is in: the number of that call's first task
    last_worker: int = -1
    shadow: int = -1  # the worker that still runs it, if it has been given to another
    path_s: float = 0.0  # seconds of work on the way here
    node: int | None = None  # the machine its input is on; a source partition is a name, and is nowhere

    def change(self, change: Change) -> None:
        """Go on to the next state, or raise EngineBug if that cannot happen."""
        try:
            self.state = TRANSITIONS[self.state, change]
        except KeyError:
            raise EngineBug(f"task {self.item_id}: {change.name} while {self.state.name}") from None


# The workers of one group, filed by how much they hold. No other file may change a worker's state.
#
# A step of the scheduler must not cost more because there are more workers. So nothing here looks at all of them:
# counts are kept as workers change, and the least loaded is on the lowest shelf that is not empty. A shelf has a box
# for every machine, because a task goes to the machine its data is on if it can. In a box the one that has been there
# longest comes first.
#
# A worker takes its calls in the order they were sent. In a group with one lane it runs the first; with more, as many
# as there are lanes, and whenever one is over the next in line begins. No message says that a call begins: the same
# rule, applied here to the same messages, tells which are running and since when.

WorkerState = Enum("WorkerState", "STARTING READY DRAINING")

NO_SHELF = -1


class Call(msgspec.Struct, eq=False):
    """Tasks a worker takes together, and since when if it has begun. Its number is that of its first task."""

    number: int
    tasks: list[TaskRecord]
    since: float = 0.0
    heard_at: float = 0.0  # when it last gave an output ahead of its end, or was allowed to give another
    unhurried: bool = False  # it has come to a stage without a deadline


class WorkerRecord(msgspec.Struct, eq=False):
    """One worker. `assigned` holds its tasks in the order they were sent; `running` and `behind`, the same by call.

    Those that run are in the order they began, so the first has been running for longest. What waits behind them is a
    list, because it is short: an empty deque takes 600 bytes, which adds up over a hundred thousand workers.
    """

    id: int
    group: int
    node: int
    gpus: tuple[tuple[int, int], ...]  # (gpu, units)
    state: WorkerState = WorkerState.STARTING
    assigned: dict[int, TaskRecord] = msgspec.field(default_factory=dict)
    running: dict[int, Call] = msgspec.field(default_factory=dict)
    behind: list[Call] = msgspec.field(default_factory=list)  # wait for a lane, the next in line first
    overdue: set[int] = msgspec.field(default_factory=set)  # calls for which it was killed
    keeps_to_itself: bool = False  # what it holds is to run alone, in one lane
    ungranted: list[int] = msgspec.field(
        default_factory=list
    )  # the task of every output the next group has not taken up
    ready_at: float = 0.0
    idle_since: float = 0.0
    running_since: float = 0.0  # when it last began to work, or was through with a task
    state_since: float = 0.0  # when it began to start, or to drain
    warned_at: float = 0.0  # seconds into what it is doing now, when the user was last warned
    rss_bytes: int = 0
    tasks_done: int = 0
    replaces: int | None = None
    recalled: bool = False  # it was told to skip a task, and may be busy with it all the same
    shadow: tuple[int, TaskRecord] | None = None  # its number here, and a task it runs that was given to another too
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
        """Whether it should end but may be held up by a task that is no longer its own."""
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
        """A task is no longer its own. `now` is given if it is done: the rest of its call then counts from now."""
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
        # It is taken for other workers, which get what would be done last.
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
            call = self.behind.pop(0)
            call.since = now
            self.running[call.number] = call

    def began(self, task: TaskRecord) -> float:
        """Since when one of its tasks has been running."""
        call = self.running.get(task.call)
        return self.running_since if call is None else call.since

    def quiet_since(self, call: Call, now: float) -> float:
        """Since when a running call that could have been heard of has been silent: what a deadline counts from.

        One that waits for its outputs to be taken up does nothing, and is not late.
        """
        if self.ungranted and any(self.ungranted.count(task.id) >= EMIT_CREDITS for task in call.tasks):
            return now
        return max(call.since, call.heard_at)

    @property
    def oldest_since(self) -> float:
        """Since when its oldest call has been running; if it runs none, since the last news of the worker."""
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
    """The workers of one group. Whatever changes what a worker holds must call `refile`."""

    def __init__(self, *, lanes: int = 1, batch_size: int = 1, by_calls: bool = False) -> None:
        self.lanes = lanes
        self._by_calls = by_calls  # where calls differ in how many tasks they hold, a load is counted in calls
        self._open_below = (lanes - 1) * batch_size  # holding no more than this many tasks, a worker has a free lane
        self.lanes_used = 0  # of all workers; not counted where a worker has one lane
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
        """How much a worker holds, in the unit workers are compared by."""
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
        before, shelves, node, open_below = worker.shelf, self._shelves, worker.node, self._open_below
        self.num_idle += (shelf == 0) - (before == 0)
        self.num_open += (0 <= shelf <= open_below) - (0 <= before <= open_below)
        if before != NO_SHELF:
            boxes = shelves[before]
            box = boxes[node]
            del box[worker.id]
            if not box:
                del boxes[node]
        worker.shelf = shelf
        if shelf != NO_SHELF:
            while len(shelves) <= shelf:
                shelves.append(OrderedDict())
            boxes = shelves[shelf]
            if node not in boxes:
                boxes[node] = OrderedDict()
            boxes[node][worker.id] = worker
            self._lowest = min(self._lowest, shelf)

    def least_loaded(self, *, below: int, avoid: int = -1, near: int | None = None) -> Iterator[WorkerRecord]:
        """The worker with the fewest tasks, fewer than `below`; then, machine by machine, those that could replace it.

        Among equals the one on the machine `near`; `avoid` only if there is no other. A caller that does not take one
        has found its machine full, and goes on: one pass over the machines, one worker of each. No worker's load may
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

    def any_holds(self, *, above: int) -> bool:
        """Whether a worker that could take more holds more than `above` tasks."""
        return len(self._shelves) > above + 1 and any(self._shelves[above + 1 :])

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
        """A task is over: its grants are no longer waited for."""
        if worker.ungranted:
            worker.ungranted = [other for other in worker.ungranted if other != task]
            if not worker.ungranted:
                del self.waiting[worker.id]

    def take_waiting(self, now: float) -> list[tuple[int, int]]:
        """All (worker, task) that wait for a grant, which they get now."""
        granted = [(worker.id, task) for worker in self.waiting.values() for task in worker.ungranted]
        waiting, self.waiting = self.waiting, {}
        for worker in waiting.values():
            for call in worker.running.values():
                if any(task.id in worker.ungranted for task in call.tasks):
                    call.heard_at = now
            worker.ungranted.clear()
            self.refile(worker)
        return granted


class GroupRecord(msgspec.Struct, eq=False):
    """One group: its queue, its workers and its measured rate."""

    plan: Group
    queue: deque[TaskRecord] = msgspec.field(default_factory=deque)
    delayed: list[tuple[float, int, TaskRecord]] = []  # heap by the time they may go on
    crew: Crew = msgspec.field(default_factory=Crew)  # of this plan, once it is known
    live: int = 0  # tasks here that are not done
    rate: Rate = msgspec.field(default_factory=Rate)
    mean_service_s: float | None = None  # a worker's time for a task; where calls share a worker, the task's share
    setup_failures: int = 0
    deaths: int = 0  # of workers at work since a task was last done without a failure
    deaths_that_count: int = 0  # those that say something about a stage; looked at until a task is done
    most_workers: int = 0  # at any death
    has_finished_some: bool = False  # tasks without a failure
    setup_s: float = 0.0
    learnt: dict[str, float] = {}  # what workers have told those that start later
    book: GroupBook = msgspec.field(default_factory=GroupBook)
    progress_at: float | None = None  # when a task last came further here, or the first came after there was none

    @classmethod
    def starting_from(cls, plan: Group, prior: Prior | None) -> "GroupRecord":
        """Return a group that has done nothing, with what is believed of it."""
        return cls(plan, rate=Rate.starting_from(prior), setup_s=0.0 if prior is None else prior.setup_s)

    def __post_init__(self) -> None:
        self.book.units = (cpu_units(self.plan.resources), 0)
        self.book.latencies = [Latency() for _ in self.plan.names]
        sized = self.plan.has_sized_batches
        self.crew = Crew(lanes=self.plan.lanes, batch_size=1 if sized else self.plan.batch_size, by_calls=sized)

    @property
    def workers(self) -> dict[int, WorkerRecord]:
        """All that are starting, ready or draining, by number. `crew` changes them."""
        return self.crew.workers

    @property
    def mean_call_s(self) -> float | None:
        """How long a task is on its way through a worker."""
        return None if self.mean_service_s is None else self.mean_service_s * self.plan.lanes

    def running_s(self, now: float) -> list[float]:
        """How long each unfinished call has been running: its share of the worker's time."""
        running = [now - call.since for worker in self.workers.values() for call in worker.running.values()]
        return running if self.plan.lanes == 1 else [seconds / self.plan.lanes for seconds in running]

    def measured(self, seconds: float, outputs: int) -> None:
        """Learn from a task that took a worker `seconds` and became `outputs` tasks."""
        self.rate.add(seconds, outputs, workers=self.crew.num_staying)
        # A mean over about the last twenty: long enough against noise, short enough to follow a change.
        self.mean_service_s = seconds if self.mean_service_s is None else 0.95 * self.mean_service_s + 0.05 * seconds

    def backlog_s(self) -> float:
        """Seconds the present workers need for what is queued."""
        return len(self.queue) * (self.mean_service_s or 0.0) / max(1, len(self.workers))


class RootRecord(msgspec.Struct, eq=False):
    """One source partition and everything that descends from it. (A struct's defaults are its own, lists included.)"""

    id: int
    name: str
    num_bytes: int
    counts: tuple[StageCounts, ...] = ()  # of every stage, once something was counted: many roots hold no documents
    live: int = 1
    outputs: list[Output] = []
    files: list[StagedFile] = []
    side_files: list[StagedFile] = []
    facts: list[Fact] = []
    useful_s: dict[int, float] = {}  # by group
    starts_over: bool = False  # what comes of it does not count, until it is listed again
    given_up: str = ""  # why it is not listed again: its input is not the one that was planned
    careful: dict[tuple[int, str], Trial] = {}  # by group and item: how to handle tasks of it when they come again
    first_attempt: int = 0  # attempts of its tasks are counted from here

    def begin_again(self, *, first_attempt: int) -> None:
        """Forget everything that came of it, and count attempts from a new number."""
        self.counts = ()
        self.outputs, self.files, self.side_files, self.facts = [], [], [], []
        self.useful_s = {}
        self.starts_over = False
        self.first_attempt = first_attempt


class NodeRecord(msgspec.Struct, eq=False):
    """One machine."""

    id: int
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int
    gpu_free: list[int] = []  # units
    cpus_used: float = 0.0

    def __post_init__(self) -> None:
        self.gpu_free = [UNITS] * len(self.gpu_memory_gb)

    def room(self, *, at_least: float = 0.0) -> Room:
        """The machine as if it were empty, with at least `at_least` CPUs."""
        cpus = round(max(self.cpus, at_least) * UNITS)
        return Room(self.id, cpus, [UNITS] * len(self.gpu_memory_gb), self.gpu_memory_gb)

    def gpu_workers(self, resources: Resources) -> int:
        """How many such workers its GPUs have room for, if nothing else uses them."""
        if resources.gpus >= 1:
            return len(self.gpu_memory_gb) // int(resources.gpus)
        shares = [share_of_gpu(resources, memory_gb) for memory_gb in self.gpu_memory_gb]
        return sum(UNITS // share for share in shares if share is not None)
