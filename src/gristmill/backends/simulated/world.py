"""`World`: machines, workers, data, a source and a ledger that are pretended, under a real scheduler, in virtual time.

It carries out every command and is a strict witness: a command that makes no sense (a task for a worker that has gone,
a payload released twice, a partition committed twice, anything after Finish) raises EngineBug. It decides nothing, and
it does not know what a task does: a subclass says so when a call begins (`call_begins`), by scheduling what will happen
(`at`).

    VirtualRun (testing)     a script says what each task does; a test may let anything happen out of turn
    Simulation               chance says how long each task takes; every second and byte is accounted for

The clock jumps from happening to happening. What a worker says never overtakes what it said before; the lanes of one
worker do not wait for each other. Every message brings payload handles of its own.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import NoReturn

from gristmill.backends.simulated.parts import GONE, Call, Data, Happening, Parcel, Worker
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.faults import Fault
from gristmill.engine.plan import Group
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import EngineBug

ALARM, SOURCE, LEDGER, KILLED = "alarm", "source", "ledger", "killed"


class World:
    """One run. `sizes` are the bytes of the source partitions, by number; `name` turns numbers into their names."""

    def __init__(
        self, groups: tuple[Group, ...], config: SchedulerConfig, sizes: Mapping[int, int], name: Callable[[int], str]
    ) -> None:
        self.groups = groups
        self.config = config
        self.scheduler = Scheduler(groups, config)
        self.now = 0.0
        self.nodes: dict[int, e.NodeJoined] = {}  # all that ever joined
        self.workers: dict[int, Worker] = {}
        self.data = Data()
        self.commits: dict[int, c.Commit] = {}
        self.writing: dict[int, Happening] = {}  # commits on their way into the ledger
        self.durable: set[int] = set()  # in the ledger and not published yet
        self.published: list[int] = []
        self.finish: c.Finish | None = None
        self._sizes = sizes
        self._name = name
        self._unlisted = deque(sizes)
        self._agenda: list[tuple[float, int, Happening]] = []
        self._happenings = 0
        self._next_worker = 0
        self._do: dict[type, Callable[..., None]] = {
            c.StartWorker: self._start,
            c.DrainWorker: self._drain,
            c.KillWorker: lambda command: self.kill(self.worker(command.worker), command.reason),
            c.SendTask: self._send,
            c.RecallTask: self._recall,
            c.GrantEmit: self._grant,
            c.PullSource: self._pull,
            c.ListAgain: self._list_again,
            c.Release: lambda command: self.data.release(command.payload),
            c.Commit: self._commit,
            c.Publish: self._publish,
            c.Warn: lambda _command: None,
            c.Tell: lambda _command: None,
            c.Finish: self._finish,
        }

    # What subclasses say

    def setup_s(self, group: int) -> float:
        """How long a worker of a group takes to be ready."""
        raise NotImplementedError

    def call_begins(self, worker: Worker, call: Call) -> None:
        """Schedule what will happen to a call that begins now."""
        raise NotImplementedError

    def may_go_on(self, worker: Worker, call: Call) -> None:
        """A call that streams and had used up its credits has one again. Only scripts stream."""

    # In and out

    def feed(self, *events: e.Event) -> list[c.Command]:
        """Tell the scheduler what has happened, and carry out its commands."""
        for event in events:
            if isinstance(event, e.NodeJoined):
                self.nodes[event.node] = event
                self.data.join_node(event.node)
        commands = self.decide(events)
        for command in commands:
            if self.finish is not None and not isinstance(command, c.Release):
                self.object(f"nothing after Finish; got {command!r}")
            self._do[type(command)](command)
        if self.scheduler.partitions_done != len(self.published):
            self.object(f"{len(self.published)} partitions to be done; got {self.scheduler.partitions_done}")
        return commands

    def decide(self, events: tuple[e.Event, ...]) -> list[c.Command]:
        """Ask the scheduler for its commands."""
        return self.scheduler.handle(e.Ticked(self.now), *events)

    def object(self, expected: str) -> NoReturn:
        """Refuse a command."""
        raise EngineBug(f"pretended world: expected {expected}")

    # Time

    def at(self, delay_s: float, what: Callable[[], e.Event | None], *, of: Worker | str = ALARM) -> Happening:
        """Let something happen later; the event it returns is told to the scheduler."""
        happening = Happening(self.now + delay_s, self._happenings, what, of)
        self._happenings += 1
        heapq.heappush(self._agenda, (happening.due, happening.number, happening))
        return happening

    def pending(self, *of: Worker | str) -> list[Happening]:
        """What these will do unless something intervenes, soonest first."""
        found = [h for _, _, h in self._agenda if h.of in of and not h.is_void]
        return sorted(found, key=lambda happening: (happening.due, happening.number))

    def out_of_turn(self, happening: Happening) -> e.Event | None:
        """Let something happen now, whenever it is due."""
        happening.void = True
        return happening.what()

    def next_due(self) -> float:
        """When something happens next; never, if nothing is to."""
        while self._agenda and self._agenda[0][2].is_void:
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else math.inf

    def next_tick(self) -> float:
        """When the scheduler wants to be woken, or looks around anyway."""
        wakeup = self.scheduler.next_wakeup()
        look_around = self.now + self.config.rescale_interval_s
        return look_around if wakeup is None else min(wakeup, look_around)

    def step(self) -> bool:
        """Jump to the next moment and tell the scheduler what happens then; False if nothing did and nothing will."""
        self.now = max(self.now, min(self.next_due(), self.next_tick()))
        events = self.events_now()
        self.feed(*events)
        return bool(events) or any(h.of != ALARM and h.due < math.inf and not h.is_void for _, _, h in self._agenda)

    def events_now(self) -> list[e.Event]:
        """Everything that happens at this moment."""
        events: list[e.Event] = []
        while self.next_due() <= self.now:
            events += self.next_events()
        return events

    def next_events(self) -> list[e.Event]:
        """Let what is due next happen; return the events to tell of it."""
        event = heapq.heappop(self._agenda)[2].what()
        return [] if event is None else [event]

    # Machines and workers

    def lose_machine(self, node: int) -> e.NodeLost:
        """Take a machine away with its workers, of which nothing more is heard, and its data."""
        for worker in [worker for worker in self.workers.values() if worker.node == node]:
            self.bury(worker)
        self.data.lose_node(node)
        return e.NodeLost(node)

    def bury(self, worker: Worker) -> None:
        """A worker is gone, and with it whatever it would have done."""
        del self.workers[worker.id]
        worker.gone = True

    def kill(self, worker: Worker, reason: str, crumb: e.Crumb | None = None) -> None:
        """End a worker in the middle of what it does; that is heard of a little later."""
        self.bury(worker)
        self.at(0.0, lambda: e.WorkerLost(worker.id, reason, crumb), of=KILLED)

    def worker(self, number: int) -> Worker:
        """Return a worker that lives."""
        if number not in self.workers:
            self.object(f"a worker that lives; got {number}")
        return self.workers[number]

    def _start(self, command: c.StartWorker) -> None:
        if command.worker != self._next_worker:
            self.object(f"worker {self._next_worker} to be started; got {command.worker}")
        self._next_worker += 1
        lanes = self.groups[command.group].lanes
        worker = Worker(command.worker, command.group, command.node, lanes, self.now)
        self.workers[worker.id] = worker
        self.at(self.setup_s(command.group), lambda: self._ready(worker), of=worker)

    def _ready(self, worker: Worker) -> e.Event:
        worker.ready_at = self.now
        self._leave_if_idle(worker)
        return e.WorkerReady(worker.id, self.setup_s(worker.group))

    def _drain(self, command: c.DrainWorker) -> None:
        worker = self.worker(command.worker)
        worker.draining = True
        self._leave_if_idle(worker)

    def _leave_if_idle(self, worker: Worker) -> None:
        if worker.draining and worker.ready and not worker.running and not worker.waiting:
            self.at(0.0, lambda: self._leave(worker), of=worker)

    def _leave(self, worker: Worker) -> e.Event:
        self.bury(worker)
        return e.WorkerExited(worker.id)

    # Tasks

    def _send(self, command: c.SendTask) -> None:
        worker = self.worker(command.worker)
        if not worker.ready or worker.draining:
            self.object(f"tasks for ready workers only; got {command!r}")
        size = self.groups[worker.group].batch_size
        for call in command.calls:
            if not 1 <= len(call) <= size:
                self.object(f"calls of 1 to {size} tasks; got {len(call)}")
            for assignment in call:
                if self.data.use(assignment.payload).home == GONE:
                    self.object(f"data that is there; got {assignment!r}")
            worker.waiting.append(Call(deque(call)))
        self._begin_calls(worker)
        alone = [task for task in worker.todo if worker.lanes > 1 and task.care is c.Care.STEP]
        if alone and len(worker.running) + len(worker.waiting) > 1:
            self.object(f"nothing beside {alone[0].item_id}; got {worker.todo!r}")

    def _recall(self, command: c.RecallTask) -> None:
        self.worker(command.worker).recall(command.tasks)

    def _begin_calls(self, worker: Worker) -> None:
        while worker.waiting and len(worker.running) < worker.lanes:
            call = worker.waiting.popleft()
            for task in [task for task in call.tasks if self.data.use(task.payload).is_lost]:
                call.tasks.remove(task)
                self._input_lost(worker, task)
            if call.tasks:
                worker.running.append(call)
                call.since = self.now
                call.turn()
                self.call_begins(worker, call)

    def _input_lost(self, worker: Worker, task: c.Assignment) -> None:
        """A worker looks for the input of a task and there is none."""
        stage, error = self.groups[worker.group].name, "its input was on a node that is lost"
        raised = e.TaskRaised(worker.id, task.task, stage, error, Fault.TRANSIENT)
        self.at(0.0, lambda: raised, of=worker)

    def end_task(self, worker: Worker, call: Call) -> None:
        """The task at hand is over: the next of its call is at hand, or the next call begins."""
        call.tasks.popleft()
        if call.tasks:
            call.turn()
            return
        worker.running.remove(call)
        self._begin_calls(worker)
        self._leave_if_idle(worker)

    def _grant(self, command: c.GrantEmit) -> None:
        worker = self.worker(command.worker)
        for call in worker.running:
            if call.tasks[0].task == command.task:
                call.credits += 1
                if call.credits == 1:
                    self.may_go_on(worker, call)

    # Source and ledger

    def source_item(self, index: int) -> e.SourceItem:
        """A partition as it is announced, with a handle of its own."""
        name, size = self._name(index), self._sizes[index]
        return e.SourceItem(index, name, size, self.data.make(name, 0, root=index))

    def _pull(self, command: c.PullSource) -> None:
        count = min(command.count, len(self._unlisted))
        items = tuple(self.source_item(self._unlisted.popleft()) for _ in range(count))
        self.at(0.0, lambda: e.SourceListed(items), of=SOURCE)
        if count < command.count:
            self.at(0.0, e.SourceExhausted, of=SOURCE)

    def _list_again(self, command: c.ListAgain) -> None:
        item = self.source_item(command.root)
        self.at(0.0, lambda: e.ListedAgain(item, command.attempt), of=SOURCE)

    def _commit(self, command: c.Commit) -> None:
        if command.root in self.commits:
            self.object(f"root {command.root} to be committed once; got it again")
        for output in command.outputs:
            self.data.use(output.payload)
        self.commits[command.root] = command
        self.writing[command.root] = self.at(0.0, lambda: self.write_down(command), of=LEDGER)

    def write_down(self, commit: c.Commit) -> e.Event:
        """A commit is in the ledger."""
        del self.writing[commit.root]
        self.durable.add(commit.root)
        return e.Committed(commit.root)

    def _publish(self, command: c.Publish) -> None:
        if command.root not in self.durable:
            self.object(f"Publish once, after Committed; got root {command.root}")
        self.durable.remove(command.root)
        self.published.append(command.root)

    def _finish(self, command: c.Finish) -> None:
        self.finish = command


def parcel_of(assignment: c.Assignment) -> Parcel:
    """The input of a task."""
    return assignment.payload  # type: ignore[return-value]  # payloads are opaque to the scheduler; these are ours
