"""`Simulation`: carries out the scheduler's commands in virtual time, and keeps account of every resource-second.

Nothing is computed and nobody waits: the clock jumps from event to event. Service times are drawn from a generator that
belongs to the item, so they do not depend on which worker takes it or in which order.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gristmill.backends.simulated.spec import SimulationSpec, as_bytes
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.plan import AnyStage, Group
from gristmill.engine.policies.packing import Room
from gristmill.engine.policies.placement import UNITS, share_of_gpu
from gristmill.engine.policies.planner import Demand, area_bound
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.errors import RunFailed
from gristmill.stages.base import ProcessingStage

STANDSTILL_S = 3600.0  # of virtual time with nothing happening but ticks: a deadlock


@dataclass
class _Worker:
    group: int
    node: int
    gpus: tuple[int, ...]
    started_at: float
    ready_at: float = math.inf
    busy_s: float = 0.0
    wasted_s: float = 0.0
    calls: deque[list[c.Assignment]] = field(default_factory=deque)
    running: list[c.Assignment] | None = None
    running_since: float = 0.0
    draining: bool = False
    epoch: int = 0  # a result of an earlier epoch comes from a worker that is gone


@dataclass(frozen=True)
class SimulationResult:
    """How it went. Shares are of all seconds of the scarcest resource, and add up to one."""

    makespan_s: float
    bound_s: float  # no schedule can be faster: the work alone, or one item's way through
    items: int
    events: int
    resource: str
    shares: dict[str, float]  # useful, setup, idle, wasted, free
    workers_started: dict[str, int]
    peak_workers: dict[str, int]

    @property
    def of_bound(self) -> float:
        """The bound over what was reached: 1 is perfect."""
        return self.bound_s / self.makespan_s if self.makespan_s else 1.0


class Simulation:
    """One simulated run."""

    def __init__(self, spec: SimulationSpec) -> None:
        self.spec = spec
        self.now = 0.0
        self.num_events = 0
        self.groups = tuple(
            Group(i, _no_stages(), (s.name,), i, s.resources, s.batch_size, s.num_workers, None)
            for i, s in enumerate(spec.stages)
        )
        config = SchedulerConfig(num_sources=spec.items, rescale_interval_s=spec.rescale_interval_s, working_copies=0.0)
        self.scheduler = Scheduler(self.groups, config)
        self.finish: c.Finish | None = None
        self.started = dict.fromkeys((s.name for s in spec.stages), 0)
        self.peak = dict.fromkeys((s.name for s in spec.stages), 0)
        self._heap: list[tuple[float, int, Callable[[], e.Event | None]]] = []
        self._sequence = 0
        self._workers: dict[int, _Worker] = {}
        self._gone: list[tuple[_Worker, float]] = []
        self._next_source = 0
        self._chance = random.Random(spec.seed)
        self._poison_marks = random.Random(f"{spec.seed}/poison")
        self._poisoned = {i for i in range(spec.items) if self._poison_marks.random() < spec.faults.poison_share}
        self._do: dict[type, Callable[..., None]] = {
            c.StartWorker: self._start,
            c.DrainWorker: self._drain,
            c.KillWorker: lambda command: self._kill(command.worker, command.reason),
            c.SendTask: self._send,
            c.GrantEmit: lambda _: None,
            c.PullSource: self._pull,
            c.Release: lambda _: None,
            c.Commit: lambda command: self._at(0.0, lambda: e.Committed(command.root)),
            c.Publish: lambda _: None,
            c.Warn: lambda _: None,
            c.Finish: self._end,
        }

    def run(self) -> SimulationResult:
        """Run to the end and return the account."""
        number = 0
        for kind in self.spec.nodes:
            for _ in range(kind.count):
                memory = (kind.gpu_memory_gb,) * kind.gpus
                node = e.NodeJoined(number, kind.cpus, memory, as_bytes(kind.memory))
                self._at(0.0, lambda node=node: node)  # type: ignore[misc]
                number += 1
        if self.spec.faults.kill_worker_every_s:
            self._at(self.spec.faults.kill_worker_every_s, self._strike)
        last_news = 0.0
        while self.finish is None:
            news = self._step()
            last_news = self.now if news else last_news
            if self.now - last_news > STANDSTILL_S:
                raise RunFailed(f"simulation: nothing has happened for {STANDSTILL_S:g} s of virtual time")
        if self.finish.outcome != "finished":
            raise RunFailed(f"simulation: {self.finish.error}")
        return self._account()

    # The clock

    def _at(self, delay_s: float, event: Callable[[], e.Event | None]) -> None:
        heapq.heappush(self._heap, (self.now + delay_s, self._sequence, event))
        self._sequence += 1

    def _step(self) -> bool:
        """Jump to the next moment and tell the scheduler all that happens then."""
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

    # Commands

    def _start(self, command: c.StartWorker) -> None:
        stage = self.spec.stages[command.group]
        self._workers[command.worker] = _Worker(command.group, command.node, command.gpus, self.now)
        self.started[stage.name] += 1
        alive = sum(w.group == command.group for w in self._workers.values())
        self.peak[stage.name] = max(self.peak[stage.name], alive)
        self._at(stage.setup_s, lambda: self._ready(command.worker))

    def _ready(self, number: int) -> e.Event | None:
        worker = self._workers.get(number)
        if worker is None:
            return None
        worker.ready_at = self.now
        return e.WorkerReady(number, self.spec.stages[worker.group].setup_s)

    def _drain(self, command: c.DrainWorker) -> None:
        worker = self._workers[command.worker]
        worker.draining = True
        if worker.running is None:
            self._at(0.0, lambda: self._leave(command.worker))

    def _leave(self, number: int) -> e.Event | None:
        if number not in self._workers:
            return None
        self._gone.append((self._workers.pop(number), self.now))
        return e.WorkerExited(number)

    def _send(self, command: c.SendTask) -> None:
        worker = self._workers[command.worker]
        worker.calls.extend(command.calls)
        self._next_call(command.worker)

    def _next_call(self, number: int) -> None:
        worker = self._workers[number]
        if worker.running is not None or not worker.calls:
            return
        worker.running = worker.calls.popleft()
        worker.running_since = self.now
        seconds = sum(self._service_s(worker.group, assignment) for assignment in worker.running)
        for assignment in worker.running:
            self._at(seconds, lambda a=assignment: self._result(number, a, seconds))  # type: ignore[misc]

    def _service_s(self, group: int, assignment: c.Assignment) -> float:
        stage = self.spec.stages[group]
        if not stage.sigma:
            return stage.service_s
        chance = random.Random(f"{self.spec.seed}/{group}/{assignment.item_id}")
        return stage.service_s * math.exp(chance.gauss(-(stage.sigma**2) / 2, stage.sigma))

    def _result(self, number: int, assignment: c.Assignment, seconds: float) -> e.Event | None:
        worker = self._workers.get(number)
        if worker is None or worker.running is None or assignment not in worker.running:
            return None
        share = seconds / len(worker.running) if worker.running else seconds
        last = assignment is worker.running[-1]
        if last:
            worker.busy_s += seconds
            worker.running = None
            self._next_call(number)
            if worker.draining and worker.running is None:
                self._at(0.0, lambda: self._leave(number))
        if self._is_poison(worker.group, assignment) and assignment.care is c.Care.NORMAL:
            worker.wasted_s += share
            return e.TaskRaised(number, assignment.task, self.spec.stages[worker.group].name, "poison")
        return e.TaskFinished(number, assignment.task, self._outputs(worker.group, assignment), share, ())

    def _is_poison(self, group: int, assignment: c.Assignment) -> bool:
        return group == 0 and assignment.payload in self._poisoned

    def _outputs(self, group: int, assignment: c.Assignment) -> tuple[e.Output, ...]:
        if self._is_poison(group, assignment):
            return ()  # taken apart and quarantined
        stage = self.spec.stages[group]
        name, size = assignment.item_id, as_bytes(stage.item_bytes)
        return tuple(
            e.Output(i, f"{name}.{i}" if stage.fan_out > 1 else name, size, None) for i in range(stage.fan_out)
        )

    def _kill(self, number: int, reason: str) -> None:
        worker = self._workers.pop(number)
        if worker.running is not None:
            worker.wasted_s += self.now - worker.running_since
        self._gone.append((worker, self.now))
        self._at(0.0, lambda: e.WorkerLost(number, reason))

    def _strike(self) -> e.Event | None:
        alive = [number for number, worker in self._workers.items() if worker.ready_at <= self.now]
        if alive:
            self._kill(self._chance.choice(alive), "killed by the simulation")
        self._at(self.spec.faults.kill_worker_every_s or 0.0, self._strike)
        return None

    def _pull(self, command: c.PullSource) -> None:
        first, self._next_source = self._next_source, min(self.spec.items, self._next_source + command.count)
        items = tuple(e.SourceItem(i, f"item-{i:06d}", 0, i) for i in range(first, self._next_source))
        self._at(0.0, lambda: e.SourceListed(items))
        if self._next_source == self.spec.items:
            self._at(0.0, e.SourceExhausted)

    def _end(self, command: c.Finish) -> None:
        self.finish = command

    # The account

    def _account(self) -> SimulationResult:
        demands, rooms = self._demands(), self._rooms()
        bound = 1 / area_bound(demands, rooms)
        cpu_bound = 1 / area_bound(demands, [Room(r.node, r.cpus, [10**9], (80.0,)) for r in rooms])
        on_gpu = cpu_bound < bound
        capacity = sum(sum(r.gpus) if on_gpu else r.cpus for r in rooms) / UNITS * self.now
        spent = dict.fromkeys(("useful", "setup", "idle", "wasted"), 0.0)
        for worker, ended in [*self._gone, *((w, self.now) for w in self._workers.values())]:
            amount = self._amount(worker, rooms, on_gpu=on_gpu)
            ready = min(worker.ready_at, ended)
            spent["setup"] += amount * (ready - worker.started_at)
            spent["useful"] += amount * (worker.busy_s - worker.wasted_s)
            spent["wasted"] += amount * worker.wasted_s
            spent["idle"] += amount * max(0.0, ended - ready - worker.busy_s)
        shares = {name: seconds / capacity for name, seconds in spent.items()} if capacity else {}
        return SimulationResult(
            makespan_s=self.now,
            bound_s=max(bound, self._longest_path()),
            items=self.spec.items,
            events=self.num_events,
            resource="gpu" if on_gpu else "cpu",
            shares=shares | {"free": 1 - sum(shares.values())},
            workers_started=self.started,
            peak_workers=self.peak,
        )

    def _amount(self, worker: _Worker, rooms: list[Room], *, on_gpu: bool) -> float:
        resources = self.groups[worker.group].resources
        if not on_gpu:
            return resources.cpus
        if resources.gpus >= 1:
            return resources.gpus
        memory = rooms[worker.node].gpu_memory_gb
        share = share_of_gpu(resources, memory[worker.gpus[0]]) if worker.gpus else 0
        return (share or 0) / UNITS

    def _demands(self) -> list[Demand]:
        demands, visits = [], float(self.spec.items)
        for i, stage in enumerate(self.spec.stages):
            demands.append(Demand(i, stage.resources, visits, 1 / max(stage.service_s, 1e-9)))
            visits *= stage.fan_out
        return demands

    def _rooms(self) -> list[Room]:
        kinds = [kind for kind in self.spec.nodes for _ in range(kind.count)]
        return [
            Room(i, round(k.cpus * UNITS), [UNITS] * k.gpus, (k.gpu_memory_gb,) * k.gpus) for i, k in enumerate(kinds)
        ]

    def _longest_path(self) -> float:
        """Nothing is done before its workers are set up and one item has gone through."""
        return sum(stage.service_s for stage in self.spec.stages) + self.spec.stages[0].setup_s


def _no_stages() -> tuple[AnyStage, ...]:
    return (ProcessingStage(),)
