"""`Simulation`: carries out the scheduler's commands in virtual time. It decides nothing and computes nothing.

The clock jumps from event to event. What an item is like is left to `chance`, what goes wrong to `faults`, where the
time went to `accounts`.
"""

import dataclasses
import heapq
import math
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from gristmill.backends.simulated.accounts import Accounts
from gristmill.backends.simulated.chance import Chance, probes
from gristmill.backends.simulated.faults import Faults
from gristmill.backends.simulated.manifest import Manifest
from gristmill.backends.simulated.result import SimulationResult
from gristmill.backends.simulated.spec import SimulationSpec, as_bytes
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.faults import Fault
from gristmill.engine.plan import AnyStage, Group
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.errors import RunFailed
from gristmill.stages.base import ProcessingStage

STANDSTILL_S = 3600.0  # of virtual time with nothing happening but ticks: a deadlock


@dataclass(slots=True)
class Parcel:
    """The pretended data of one item: where it is, and how long its way there took."""

    num_bytes: int
    node: int = -1  # nowhere yet: a name in a list
    home: int = -1  # the node it was made on
    item: int = -1  # the source item it came of
    path_s: float = 0.0


@dataclass(eq=False)
class SimulatedWorker:
    """One worker."""

    number: int
    group: int
    node: int
    gpus: tuple[int, ...]
    started_at: float
    ready_at: float = math.inf
    busy_s: float = 0.0
    wasted_s: float = 0.0
    killed_s: float = 0.0  # of what was wasted
    lanes: int = 1
    calls: deque[list[c.Assignment]] = field(default_factory=deque)
    running: dict[int, float] = field(default_factory=dict)  # calls, by their first task: since when
    draining: bool = False


class Simulation:
    """One simulated run. `done` are source items an earlier one has committed."""

    def __init__(self, spec: SimulationSpec, *, done: Collection[int] = ()) -> None:
        self.spec = spec
        self.now = 0.0
        self.num_events = 0
        self.attempts = 0
        self._quarantined: dict[int, int] = {}  # documents by source item; one that starts over is counted once
        self.groups = tuple(
            Group(
                i,
                _no_stages(),
                (s.name,),
                i,
                s.resources,
                s.batch_size,
                s.num_workers,
                None,
                may_run_twice=s.may_run_twice,
                lanes=s.lanes,
            )
            for i, s in enumerate(spec.stages)
        )
        config = SchedulerConfig(
            num_sources=spec.items - len(done),
            rescale_interval_s=spec.rescale_interval_s,
            working_copies=0.0,
            passed_before=(True,) * len(self.groups),  # stages that fail as often as they are told to are not broken
        )
        self.scheduler = Scheduler(self.groups, config)
        self.finish: c.Finish | None = None
        self.workers: dict[int, SimulatedWorker] = {}
        self.chance = Chance(spec)
        self.accounts = Accounts(spec)
        self.manifest = Manifest()
        self._faults = Faults(self)
        self._sources = iter([i for i in range(spec.items) if i not in set(done)])
        self._heap: list[tuple[float, int, Callable[[], e.Event | None]]] = []
        self._sequence = 0
        self._do: dict[type, Callable[..., None]] = {
            c.StartWorker: self._start,
            c.DrainWorker: self._drain,
            c.KillWorker: lambda command: self.kill(command.worker, command.reason),
            c.SendTask: self._send,
            c.RecallTask: self._recall,
            c.GrantEmit: lambda _: None,
            c.PullSource: self._pull,
            c.ListAgain: self._list_again,
            c.Release: lambda command: self.accounts.forget(command.payload),
            c.Commit: self._commit,
            c.Publish: lambda _: None,
            c.Warn: lambda _: None,
            c.Tell: lambda _: None,
            c.Finish: self._end,
        }

    def run(self) -> SimulationResult:
        """Run to the end and return the account."""
        self.begin()
        last_news = 0.0
        while self.finish is None:
            news = self.step()
            last_news = self.now if news else last_news
            if self.now - last_news > STANDSTILL_S:
                raise RunFailed(f"simulation: nothing has happened for {STANDSTILL_S:g} s of virtual time")
        if self.finish.outcome != "finished":
            raise RunFailed(f"simulation: {self.finish.error}")
        return self._result()

    def begin(self) -> None:
        """Let the machines join; `step` then goes on from moment to moment."""
        for kind in self.spec.nodes:
            for _ in range(kind.count):
                node = self.accounts.add_node(kind)
                self.at(0.0, lambda node=node: node)  # type: ignore[misc]
        self._faults.begin()

    # The clock

    def at(self, delay_s: float, event: Callable[[], e.Event | None]) -> None:
        """Let something happen later; what it returns is told to the scheduler."""
        heapq.heappush(self._heap, (self.now + delay_s, self._sequence, event))
        self._sequence += 1

    def step(self) -> bool:
        """Jump to the next moment and tell the scheduler all that happens then; False if nothing did."""
        ticks = [self.scheduler.next_wakeup(), self.now + self.spec.rescale_interval_s]
        moment = min(t for t in (*ticks, self._heap[0][0] if self._heap else None) if t is not None)
        self.now = max(self.now, moment)
        events = []
        while self._heap and self._heap[0][0] <= self.now:
            event = heapq.heappop(self._heap)[2]()
            if event is not None:
                events.append(event)
        self.num_events += len(events)
        for command in self.scheduler.handle(e.Ticked(self.now), *events):
            self._do[type(command)](command)
        return bool(events)

    # Workers

    def _start(self, command: c.StartWorker) -> None:
        lanes = self.spec.stages[command.group].lanes
        worker = SimulatedWorker(command.worker, command.group, command.node, command.gpus, self.now, lanes=lanes)
        self.workers[command.worker] = worker
        self.accounts.started(worker)
        self.at(self.spec.stages[command.group].setup_s, lambda: self._ready(worker))

    def _ready(self, worker: SimulatedWorker) -> e.Event | None:
        if worker.number not in self.workers:
            return None
        worker.ready_at = self.now
        return e.WorkerReady(worker.number, self.spec.stages[worker.group].setup_s)

    def _drain(self, command: c.DrainWorker) -> None:
        worker = self.workers[command.worker]
        worker.draining = True
        if not worker.running:
            self.at(0.0, lambda: self._leave(worker))

    def _leave(self, worker: SimulatedWorker) -> e.Event | None:
        if self.workers.pop(worker.number, None) is None:
            return None
        self.accounts.ended(worker, self.now)
        return e.WorkerExited(worker.number)

    def kill(self, number: int, reason: str, crumb: e.Crumb | None = None, *, told: bool = True) -> None:
        """End a worker in the middle of what it does. A lost node says so itself: then its workers are not told of."""
        worker = self.workers.pop(number, None)
        if worker is None:
            return
        for since in worker.running.values():
            lost = (self.now - since) / worker.lanes
            worker.busy_s += lost
            worker.wasted_s += lost
            worker.killed_s += lost
            self.attempts += 1
        self.accounts.ended(worker, self.now)
        if told:
            self.at(0.0, lambda: e.WorkerLost(number, reason, crumb))

    # Tasks

    def _send(self, command: c.SendTask) -> None:
        worker = self.workers[command.worker]
        worker.calls.extend(command.calls)
        self._next_call(worker)

    def _recall(self, command: c.RecallTask) -> None:
        worker = self.workers.get(command.worker)
        if worker is None:
            return  # it has just died, and the scheduler has not heard of it yet
        kept = ([a for a in call if a.task not in command.tasks] for call in worker.calls)
        worker.calls = deque(call for call in kept if call)

    def _next_call(self, worker: SimulatedWorker) -> None:
        while worker.calls and len(worker.running) < worker.lanes:
            self._begin_call(worker)

    def _begin_call(self, worker: SimulatedWorker) -> None:
        call = worker.calls.popleft()
        lost = [assignment for assignment in call if not self.accounts.has(_parcel(assignment))]
        if lost:
            for assignment in lost:
                self._data_lost(worker, assignment)
            worker.calls.appendleft([assignment for assignment in call if assignment not in lost])
            if not worker.calls[0]:
                worker.calls.popleft()
            return
        worker.running[call[0].task] = self.now
        moved = sum(self.accounts.move(_parcel(assignment), worker.node) for assignment in call)
        work_s = sum(self._work_s(worker.group, assignment) for assignment in call)
        late_s = moved + self.spec.stages[worker.group].dispatch_s
        seconds = self.chance.lasts_s(worker.group, self.now + late_s, work_s)
        fatal = next((found for found in (self._fatal(worker.group, a) for a in call) if found), None)
        if fatal is not None:
            self.at(late_s + seconds / 2, lambda: self._die(worker, call, fatal[0]))
            return
        for assignment in call:
            self.at(late_s + seconds, lambda a=assignment: self._ended(worker, call, a, seconds))  # type: ignore[misc]

    def _data_lost(self, worker: SimulatedWorker, assignment: c.Assignment) -> None:
        """A worker looks for the input of a task and there is none."""
        name = self.spec.stages[worker.group].name
        raised = e.TaskRaised(
            worker.number, assignment.task, name, "its input was on a node that is lost", Fault.TRANSIENT
        )
        self.at(0.0, lambda: raised)

    def _work_s(self, group: int, assignment: c.Assignment) -> float:
        """Seconds of work; one that is taken apart to find what is bad costs more."""
        work_s = self.chance.service_s(group, assignment.item_id)
        if assignment.care is c.Care.NORMAL:
            return work_s
        return 0.0 if assignment.care is c.Care.CONDEMN else work_s * (2 + math.log2(self.spec.documents))

    def _fatal(self, group: int, assignment: c.Assignment) -> tuple[e.Crumb | None] | None:
        """Where a worker that takes this dies: (crumb,), or None if it lives."""
        if group or assignment.care is c.Care.CONDEMN:
            return None
        known = {crumb.first_row for crumb in assignment.condemned}
        rows = [row for row in self._bad(assignment)[1] if row not in known]
        if not rows:
            return None
        return (e.Crumb(0, rows[0], rows[0] + 1) if assignment.care is c.Care.STEP else None,)

    def _die(self, worker: SimulatedWorker, call: list[c.Assignment], crumb: e.Crumb | None) -> None:
        if call[0].task in worker.running:
            self.kill(worker.number, "out of memory", crumb)

    def _ended(
        self, worker: SimulatedWorker, call: list[c.Assignment], assignment: c.Assignment, seconds: float
    ) -> e.Event | None:
        """One assignment of a call is done. All are at the same moment; with the last one the worker goes on."""
        if worker.number not in self.workers:
            return None
        share = seconds / len(call)
        if assignment is call[-1]:
            worker.busy_s += seconds / worker.lanes
            del worker.running[call[0].task]
            self.attempts += 1
            self._next_call(worker)
            if worker.draining and not worker.running:
                self.at(0.0, lambda: self._leave(worker))
        poison = () if worker.group else self._bad(assignment)[0]
        if poison and assignment.care is c.Care.NORMAL:
            worker.wasted_s += share / worker.lanes
            return e.TaskRaised(worker.number, assignment.task, self.spec.stages[worker.group].name, "poison")
        if poison:
            self.attempts += 1 + probes(range(self.spec.documents), poison)
        outputs = self._outputs(worker, assignment, share)
        return e.TaskFinished(worker.number, assignment.task, outputs, share, ())

    def _bad(self, assignment: c.Assignment) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.chance.bad_documents(_parcel(assignment).item)

    def _outputs(self, worker: SimulatedWorker, assignment: c.Assignment, seconds: float) -> tuple[e.Output, ...]:
        parcel = _parcel(assignment)
        group, name = worker.group, assignment.item_id
        work_s = self.chance.service_s(group, name) / worker.lanes
        self.accounts.worked(parcel.item, group, work_s, parcel.path_s + seconds)
        if group == 0:
            bad = sum(map(len, self._bad(assignment)))
            self._quarantined[parcel.item] = bad
            if bad == self.spec.documents:
                return ()
        last = group + 1 == len(self.groups)
        size = as_bytes(self.spec.stages[group].item_bytes)
        count = self.chance.fan_out(group, name)
        made = []
        for i in range(count):
            # The last stage writes.
            output = Parcel(0 if last else size, item=parcel.item, path_s=parcel.path_s + seconds)
            self.accounts.hold(output, worker.node)
            made.append(e.Output(i, f"{name}.{i}" if count > 1 else name, size, output))
        return tuple(made)

    # Source and sink

    def _pull(self, command: c.PullSource) -> None:
        items = []
        for i in self._sources:
            items.append(self._source_item(i))
            if len(items) == command.count:
                break
        self.at(0.0, lambda: e.SourceListed(tuple(items)))
        if len(items) < command.count:
            self.at(0.0, e.SourceExhausted)

    def _list_again(self, command: c.ListAgain) -> None:
        self.accounts.lost(command.root)
        self.at(0.0, lambda: e.ListedAgain(self._source_item(command.root), command.attempt))

    def _source_item(self, index: int) -> e.SourceItem:
        return e.SourceItem(index, f"item-{index:06d}", as_bytes(self.spec.source_bytes), Parcel(0, item=index))

    def _commit(self, command: c.Commit) -> None:
        def durable() -> e.Event:
            self.manifest.add(command)
            self.accounts.committed(command.root)
            return e.Committed(command.root)

        self.at(0.0, durable)

    def _end(self, command: c.Finish) -> None:
        self.finish = command

    def _result(self) -> SimulationResult:
        for worker in self.workers.values():
            self.accounts.ended(worker, self.now)
        scheduler = self.scheduler
        result = self.accounts.result(
            self.now,
            scheduler.account.efficiency(scheduler.groups, scheduler.now),
            events=self.num_events,
            attempts=self.attempts,
            quarantined=sum(self._quarantined.values()),
            digest=self.manifest.digest(),
        )
        busy = {group.plan.name: group.book.utilisation() for group in scheduler.groups}
        return dataclasses.replace(result, utilisation=busy)


def _parcel(assignment: c.Assignment) -> Parcel:
    return assignment.payload  # type: ignore[return-value]  # payloads are opaque to the scheduler; these are ours


def _no_stages() -> tuple[AnyStage, ...]:
    return (ProcessingStage(),)
