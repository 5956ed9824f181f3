"""`VirtualRun`: a scheduler and a pretended world that carries out its commands, in virtual time.

Workers do what a script says (`Deed`), nothing is computed and nobody waits. The world is also a strict witness: it
raises EngineBug when a command makes no sense (a task for a worker that has gone, a payload released twice, a root
committed twice), and after every step `engine.invariants` is asked.

A message of one worker never overtakes another of the same worker: channels are ordered. Every message brings payload
handles of its own, a repeated message too, so that releasing those of a repeat does not touch the data of the original.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.faults import Fault
from gristmill.engine.plan import AnyStage, Group
from gristmill.engine.scheduler import Scheduler, SchedulerConfig
from gristmill.errors import EngineBug
from gristmill.metrics.snapshot import StageCounts, balance
from gristmill.stages.base import ProcessingStage
from gristmill.stages.resources import Resources

TICK_S = 0.1
MIN_TICK_S = 0.001  # a wakeup may be a rounding error away
STANDSTILL_S = 100.0  # this long without an event is a deadlock: longer than any pause
CIRCLES_S = 2_000.0  # without a finished task, whatever else happens
NOWHERE = -1  # where a name is, as opposed to data


@dataclass(frozen=True)
class Deed:
    """What a worker does with one task: outputs of these sizes, the first `streamed` of them one by one."""

    sizes: tuple[int, ...] = (1,)
    streamed: int = 0
    service_s: float = 0.01
    failure: Literal["", "raises", "transient", "dies"] = ""
    crumb: e.Crumb | None = None


Script = Callable[[int, c.Assignment], Deed]


def group(
    index: int,
    *,
    batch_size: int = 1,
    resources: Resources | None = None,
    num_workers: int | None = None,
    deadline_s: float | None = None,
    **further: bool | int,
) -> Group:
    """Return a group of one stage that is never called; `further`: may_run_twice, lanes, cancels."""
    shape = Resources() if resources is None else resources
    stages: tuple[AnyStage, ...] = (ProcessingStage(),)
    return Group(
        index,
        stages,
        (f"stage_{index}",),
        index,
        shape,
        batch_size,
        num_workers,
        deadline_s,
        **further,  # type: ignore[arg-type]  # fields of a group
    )


@dataclass(frozen=True)
class Payload:
    """A handle of some data."""

    number: int
    item_id: str
    node: int = NOWHERE


@dataclass
class PretendedWorker:
    """One worker as the world sees it. `todo` is in the order it was sent; the first calls of it are under way."""

    id: int
    group: int
    node: int
    lanes: int = 1
    ready: bool = False
    draining: bool = False
    todo: deque[c.Assignment] = field(default_factory=deque)
    calls: dict[int, int] = field(default_factory=dict)  # which call a task is in
    emitted: dict[int, int] = field(default_factory=dict)  # outputs of running tasks that have left
    credits: dict[int, int] = field(default_factory=dict)
    acted_at: dict[int, float] = field(default_factory=dict)
    changed_at: float = 0.0  # when it was started, or last did something

    def under_way(self) -> list[c.Assignment]:
        """The task each lane is at."""
        first: dict[int, c.Assignment] = {}
        for assignment in self.todo:
            first.setdefault(self.calls[assignment.task], assignment)
            if len(first) > self.lanes:
                break
        return list(first.values())[: self.lanes]

    def begin(self, now: float) -> None:
        """Let the next tasks begin where lanes are free."""
        for assignment in self.under_way():
            if assignment.task not in self.acted_at:
                self.acted_at[assignment.task] = now
                self.emitted[assignment.task] = assignment.skip
                self.credits[assignment.task] = c.EMIT_CREDITS

    def end(self, assignment: c.Assignment, now: float) -> None:
        """A task is over."""
        self.todo.remove(assignment)
        for known in (self.calls, self.acted_at, self.emitted, self.credits):
            known.pop(assignment.task)
        self.begin(now)


class VirtualRun:
    """One run. `events` and `commands` are everything that went in and came out, in order.

    `done` are source partitions an earlier run has committed: this one goes on without them.
    """

    def __init__(
        self,
        groups: tuple[Group, ...],
        sources: Iterable[int],
        script: Script | None = None,
        *,
        config: SchedulerConfig | None = None,
        setup_s: float = 0.01,
        done: Collection[int] = (),
    ) -> None:
        sizes = {index: size for index, size in enumerate(sources) if index not in done}
        self._sizes = sizes
        self.groups = groups
        # Documents have passed every stage before, so that what a script lets fail does not stop the run.
        passed = (True,) * sum(len(group.names) for group in groups)
        self.config = replace(config or SchedulerConfig(num_sources=len(sizes)), passed_before=passed)
        self.scheduler = Scheduler(groups, self.config)
        self.script: Script = script or (lambda _group, _assignment: Deed())
        self.setup_s = setup_s
        self.now = 0.0
        self.workers: dict[int, PretendedWorker] = {}
        self.nodes: dict[int, e.NodeJoined] = {}
        self.lost_payloads: set[int] = set()  # data that was on a machine that is gone
        self.payloads: dict[int, Payload] = {}  # handles not released yet
        self.events: list[e.Event] = []
        self.commands: list[c.Command] = []
        self.source_notices: deque[e.Event] = deque()
        self.notices: list[e.Event] = []  # Committed and WorkerLost of the killed, in any order
        self.commits: dict[int, c.Commit] = {}
        self.durable: set[int] = set()
        self.published: list[int] = []
        self.finish: c.Finish | None = None
        self.quarantined: dict[str, int] = {}  # item -> how many of its outputs had left before
        self._unlisted = deque(sizes.items())
        self._next_payload = 0
        self._next_worker = 0
        self._do: dict[type, Callable[..., None]] = {
            c.StartWorker: self._start,
            c.DrainWorker: self._drain,
            c.KillWorker: self._kill,
            c.SendTask: self._send,
            c.RecallTask: self._recall,
            c.GrantEmit: self._grant,
            c.PullSource: self._pull,
            c.ListAgain: self._list_again,
            c.Release: lambda command: self._release(command.payload),
            c.Commit: self._commit,
            c.Publish: lambda command: self._publish(command.root),
            c.Warn: lambda _command: None,
            c.Tell: lambda _command: None,
            c.Finish: self._finish,
        }

    # In and out

    def feed(self, *events: e.Event) -> list[c.Command]:
        """Tell the scheduler, check the invariants, carry out the commands."""
        self.events.append(e.Ticked(self.now))
        self.events.extend(events)
        for event in events:
            if isinstance(event, e.Committed):
                self.durable.add(event.root)
        commands = self.scheduler.handle(e.Ticked(self.now), *events)
        invariants.check(self.scheduler, commands)
        for command in commands:
            self._obey(command)
        done = self.scheduler.partitions_done
        if done != len(self.published):
            raise EngineBug(f"virtual run: expected {len(self.published)} partitions to be done; got {done}")
        self.commands.extend(commands)
        return commands

    def join(self, *, cpus: float = 2, gpu_memory_gb: tuple[float, ...] = (), memory_bytes: int = 1 << 40) -> None:
        """Let a machine join."""
        node = e.NodeJoined(len(self.nodes), cpus, gpu_memory_gb, memory_bytes)
        self.nodes[node.node] = node
        self.feed(node)

    def lose_outputs(self, root: int) -> list[c.Command]:
        """Be unable to commit a partition, because what came out at its end is gone; return the answer."""
        self.notices.remove(e.Committed(root))
        for output in self.commits.pop(root).outputs:
            self._release(output.payload)
        return self.feed(e.OutputsLost(root))

    def lose_node(self, node: int) -> None:
        """Take a machine away with all its workers and data; one with the same shape may join later."""
        self.lost_payloads |= {payload.number for payload in self.payloads.values() if payload.node == node}
        self.workers = {w.id: w for w in self.workers.values() if w.node != node}
        self.feed(e.NodeLost(node))

    def lose(self, worker: int, cause: str = "killed", crumb: e.Crumb | None = None) -> None:
        """Let a worker die."""
        del self.workers[worker]
        self.feed(e.WorkerLost(worker, cause, crumb))

    def fail_setup(self, worker: int) -> None:
        """Let a worker that is starting fail."""
        del self.workers[worker]
        self.feed(e.WorkerSetupFailed(worker, "no model"))

    def fail_task(self, worker: int, *, transient: bool = False, lane: int = 0) -> None:
        """Let a running task of a worker raise."""
        record = self.workers[worker]
        under_way = record.under_way()
        assignment = under_way[lane % len(under_way)]
        record.end(assignment, self.now)
        fault = Fault.TRANSIENT if transient else Fault.DOCUMENT
        self.feed(e.TaskRaised(worker, assignment.task, f"stage_{record.group}", "ValueError: no", fault))

    def last_words(self, worker: int) -> e.Event:
        """What a worker that has a task would say if it finished it now, for a message that comes too late."""
        record = self.workers[worker]
        assignment = record.under_way()[0]
        deed = self._deed(record.group, assignment)
        made = range(record.emitted[assignment.task], len(deed.sizes))
        outputs = (self._output(record, assignment, n, deed) for n in made)
        return e.TaskFinished(worker, assignment.task, tuple(outputs), deed.service_s, ())

    def repeat(self, event: e.Event) -> list[c.Command]:
        """Deliver an old message again, with handles of its own; return the answer."""
        if isinstance(event, e.TaskFinished):
            event = e.TaskFinished(
                event.worker, event.task, tuple(map(self._again, event.outputs)), event.useful_s, event.counts
            )
        elif isinstance(event, e.TaskEmitted):
            event = e.TaskEmitted(event.worker, event.task, self._again(event.output))
        elif isinstance(event, e.ListedAgain):
            event = e.ListedAgain(self._source_item(event.item.index), event.attempt)
        elif isinstance(event, e.SourceListed):
            items = [e.SourceItem(i.index, i.name, i.num_bytes, self._payload(i.name)) for i in event.items]
            event = e.SourceListed(tuple(items))
        return self.feed(event)

    def _again(self, output: e.Output) -> e.Output:
        payload = self._payload(output.item_id, output.payload.node)  # type: ignore[attr-defined]  # one of ours
        return e.Output(output.index, output.item_id, output.num_bytes, payload)

    # What may happen next

    def running(self) -> list[int]:
        """Workers that have a task."""
        return [w.id for w in self.workers.values() if w.ready and w.todo]

    def able(self) -> list[int]:
        """Workers that will say something without being told anything."""
        return [w.id for w in self.workers.values() if self._is_able(w)]

    def _is_able(self, worker: PretendedWorker) -> bool:
        if not worker.ready:
            return True
        return bool(self._able_lanes(worker)) if worker.todo else worker.draining

    def _able_lanes(self, worker: PretendedWorker) -> list[c.Assignment]:
        """Running tasks that can go on; of those of equal standing the one that is due first."""

        def can_go_on(assignment: c.Assignment) -> bool:
            streamed = self._deed(worker.group, assignment).streamed
            return worker.emitted[assignment.task] >= streamed or worker.credits[assignment.task] > 0

        able = [assignment for assignment in worker.under_way() if can_go_on(assignment)]
        return sorted(able, key=lambda assignment: self._lane_due(worker, assignment))

    def _deed(self, group: int, assignment: c.Assignment) -> Deed:
        if assignment.care is c.Care.CONDEMN:
            return Deed(sizes=(0,) * assignment.skip)
        return self.script(group, assignment)

    def act(self, number: int, *, lane: int = 0) -> None:
        """Let a worker that is able do its next thing, in the lane that is due first or another."""
        worker = self.workers[number]
        worker.changed_at = self.now
        if not worker.ready:
            worker.ready = True
            self.feed(e.WorkerReady(number, self.setup_s))
        elif not worker.todo:
            del self.workers[number]
            self.feed(e.WorkerExited(number))
        else:
            able = self._able_lanes(worker)
            assignment = able[lane % len(able)]
            self._work(worker, assignment, self._deed(worker.group, assignment))

    def _work(self, worker: PretendedWorker, assignment: c.Assignment, deed: Deed) -> None:
        task = assignment.task
        worker.acted_at[task] = self.now
        if worker.emitted[task] < deed.streamed:
            output = self._output(worker, assignment, worker.emitted[task], deed)
            worker.emitted[task] += 1
            worker.credits[task] -= 1
            self.feed(e.TaskEmitted(worker.id, assignment.task, output))
        elif deed.failure == "dies":
            self.lose(worker.id, "killed by SIGSEGV", deed.crumb)
        elif deed.failure:
            lane = worker.under_way().index(assignment)
            self.fail_task(worker.id, transient=deed.failure == "transient", lane=lane)
        else:
            self._finish_task(worker, assignment, deed)

    def _finish_task(self, worker: PretendedWorker, assignment: c.Assignment, deed: Deed) -> None:
        made_now = range(worker.emitted[assignment.task], len(deed.sizes))
        outputs = tuple(self._output(worker, assignment, n, deed) for n in made_now)
        is_condemned = assignment.care is c.Care.CONDEMN
        if is_condemned:
            self.quarantined[assignment.item_id] = assignment.skip
        made = len(deed.sizes)
        counts = StageCounts(
            documents_in=1,
            documents_out=made,
            read=int(worker.group == 0),
            created=made if is_condemned else max(0, made - 1),
            written=made if worker.group + 1 == len(self.groups) else 0,
            quarantined=int(is_condemned),
            dropped={"nothing": 1} if not made and not is_condemned else {},
        )
        worker.end(assignment, self.now)
        self.feed(e.TaskFinished(worker.id, assignment.task, outputs, deed.service_s, (counts,)))

    def _output(self, worker: PretendedWorker, assignment: c.Assignment, index: int, deed: Deed) -> e.Output:
        item_id = f"{assignment.item_id}.{index}"
        return e.Output(index, item_id, deed.sizes[index], self._payload(item_id, worker.node))

    def _payload(self, item_id: str, node: int = NOWHERE) -> Payload:
        payload = Payload(self._next_payload, item_id, node)
        self._next_payload += 1
        self.payloads[payload.number] = payload
        return payload

    # Time

    def run(self) -> c.Finish:
        """Let everything happen in its own time until the run is over; EngineBug if it comes to a standstill.

        It may also run in circles: workers that come and go while no task is finished.
        """
        moved_at, done_at, done = self.now, self.now, -1
        while self.finish is None:
            if self.next_step():
                moved_at = self.now
            now_done = sum(group.book.tasks for group in self.scheduler.groups)
            if now_done != done:
                done_at, done = self.now, now_done
            if self.now - moved_at > STANDSTILL_S or self.now - done_at > CIRCLES_S:
                since = self.now - done_at
                raise EngineBug(f"virtual run: expected progress; got none for {since:g} s: {self.picture()}")
        return self.finish

    def next_step(self) -> bool:
        """One notice, or the worker that is first, or time that passes; False if nobody did anything."""
        if self.source_notices:
            self.tell_source()
            return True
        if self.notices:
            self.feed(self.notices.pop(0))
            return True
        due = sorted((self._due(self.workers[number]), number) for number in self.able())
        times = [self.now + TICK_S if due else self.now + self.config.rescale_interval_s]
        wakeup = self.scheduler.next_wakeup()
        if wakeup is not None:
            times.append(max(wakeup, self.now + MIN_TICK_S))
        if due and due[0][0] <= min(times):
            self.now = max(self.now, due[0][0])
            self.act(due[0][1])
            return True
        self.now = min(times)
        self.feed()
        return bool(due)

    def _due(self, worker: PretendedWorker) -> float:
        if not worker.ready:
            return worker.changed_at + self.setup_s
        if not worker.todo:
            return worker.changed_at
        return self._lane_due(worker, self._able_lanes(worker)[0])

    def _lane_due(self, worker: PretendedWorker, assignment: c.Assignment) -> float:
        deed = self._deed(worker.group, assignment)
        return worker.acted_at[assignment.task] + deed.service_s / (deed.streamed + 1)

    def picture(self) -> str:
        """The queues and workers, for a message."""
        queues = [(g.live, len(g.queue), len(g.delayed), len(g.workers)) for g in self.scheduler.groups]
        return f"(live, queued, delayed, workers) by group {queues}; {len(self.running())} workers hold tasks"

    # Commands

    def _obey(self, command: c.Command) -> None:
        if self.finish is not None and not isinstance(command, c.Release):
            raise EngineBug(f"virtual run: expected nothing after Finish; got {command!r}")
        self._do[type(command)](command)

    def _drain(self, command: c.DrainWorker) -> None:
        self._worker(command.worker).draining = True

    def _kill(self, command: c.KillWorker) -> None:
        del self.workers[self._worker(command.worker).id]
        self.notices.append(e.WorkerLost(command.worker, command.reason))

    def _finish(self, command: c.Finish) -> None:
        self.finish = command

    def _worker(self, number: int) -> PretendedWorker:
        if number not in self.workers:
            raise EngineBug(f"virtual run: expected a worker that lives; got {number}")
        return self.workers[number]

    def _start(self, command: c.StartWorker) -> None:
        if command.worker != self._next_worker:
            raise EngineBug(f"virtual run: expected worker {self._next_worker} to be started; got {command.worker}")
        self._next_worker += 1
        lanes = self.groups[command.group].lanes
        self.workers[command.worker] = PretendedWorker(
            command.worker, command.group, command.node, lanes, changed_at=self.now
        )

    def _send(self, command: c.SendTask) -> None:
        worker = self._worker(command.worker)
        if not worker.ready or worker.draining:
            raise EngineBug(f"virtual run: expected tasks for ready workers only; got {command!r}")
        size = self.groups[worker.group].batch_size
        for call in command.calls:
            if not 1 <= len(call) <= size:
                raise EngineBug(f"virtual run: expected calls of 1 to {size} tasks; got {len(call)}")
            for assignment in call:
                if self._use(assignment.payload).number in self.lost_payloads:
                    raise EngineBug(f"virtual run: expected data that is there; got {assignment!r}")
                worker.calls[assignment.task] = call[0].task
                worker.todo.append(assignment)
        worker.begin(self.now)
        alone = [a for a in worker.todo if worker.lanes > 1 and a.care is c.Care.STEP]
        if alone and len(set(worker.calls.values())) > 1:
            raise EngineBug(f"virtual run: expected nothing beside {alone[0].item_id}; got {list(worker.todo)!r}")

    def _recall(self, command: c.RecallTask) -> None:
        worker = self._worker(command.worker)
        begun = worker.under_way()
        worker.todo = deque([a for a in worker.todo if a.task not in command.tasks or a in begun])
        worker.calls = {a.task: worker.calls[a.task] for a in worker.todo}

    def _grant(self, command: c.GrantEmit) -> None:
        worker = self._worker(command.worker)
        if command.task in worker.credits:
            if worker.credits[command.task] == 0:
                worker.acted_at[command.task] = self.now
            worker.credits[command.task] += 1

    def _pull(self, command: c.PullSource) -> None:
        batch = [self._unlisted.popleft() for _ in range(min(command.count, len(self._unlisted)))]
        self.source_notices.append(e.SourceListed(tuple(self._source_item(index) for index, _ in batch)))
        if len(batch) < command.count:
            self.source_notices.append(e.SourceExhausted())

    def _list_again(self, command: c.ListAgain) -> None:
        name = f"p{command.root}"
        self.quarantined = {i: n for i, n in self.quarantined.items() if i != name and not i.startswith(f"{name}.")}
        self.source_notices.append(e.ListedAgain(self._source_item(command.root), command.attempt))

    def _source_item(self, index: int) -> e.SourceItem:
        return e.SourceItem(index, f"p{index}", self._sizes[index], self._payload(f"p{index}"))

    def tell_source(self) -> None:
        """Deliver the next answer of the source."""
        self.feed(self.source_notices.popleft())

    def _use(self, payload: object) -> Payload:
        if not isinstance(payload, Payload) or payload.number not in self.payloads:
            raise EngineBug(f"virtual run: expected a payload that is not released; got {payload!r}")
        return payload

    def _release(self, payload: object) -> None:
        del self.payloads[self._use(payload).number]

    def _commit(self, command: c.Commit) -> None:
        if command.root in self.commits:
            raise EngineBug(f"virtual run: expected root {command.root} to be committed once; got it again")
        for output in command.outputs:
            self._use(output.payload)
        self.commits[command.root] = command
        self.notices.append(e.Committed(command.root))

    def _publish(self, root: int) -> None:
        if root not in self.durable or root in self.published:
            raise EngineBug(f"virtual run: expected Publish once, after Committed; got root {root}")
        self.published.append(root)

    # The end

    def check_books(self) -> None:
        """Raise EngineBug unless every source partition came out once, whole, and nothing is left over."""
        told = {
            "outcome": (c.Finish("finished"), self.finish),
            "committed": (len(self.commits), self.config.num_sources),
            "published": (sorted(self.published), sorted(self.commits)),
            "kept payloads": (
                sorted(p.number for p in self.payloads.values()),
                sorted(o.payload.number for x in self.commits.values() for o in x.outputs),  # type: ignore[attr-defined]
            ),
            "outputs": (
                {root: [o.item_id for o in commit.outputs] for root, commit in self.commits.items()},
                {root: sorted(self._leaves(f"p{root}", 0)) for root in self.commits},
            ),
            "balance": (0, balance([counts for commit in self.commits.values() for counts in commit.counts])),
            "quarantined": (len(self.quarantined), sum(n.quarantined for x in self.commits.values() for n in x.counts)),
        }
        for what, (left, right) in told.items():
            if left != right:
                raise EngineBug(f"virtual run: expected {what} to agree; got {left!r} and {right!r}")

    def _leaves(self, item_id: str, index: int) -> list[str]:
        """The final outputs an item should have, by the script alone."""
        if index == len(self.groups):
            return [item_id]
        careful = c.Assignment(-1, item_id, None, c.Care.ISOLATE, 1, (), "", 0)
        made = self.quarantined.get(item_id, len(self.script(index, careful).sizes))
        return [leaf for n in range(made) for leaf in self._leaves(f"{item_id}.{n}", index + 1)]
