"""`VirtualRun`: a scheduler in a pretended world in which tasks do what a script says, and anything may happen.

Workers do what the script says (`Deed`), nothing is computed and nothing waits. The world is the one of the simulator
(`gristmill.backends.simulated.world`), a strict witness of every command; here `engine.invariants` is asked after every
step as well. One thing happens at a time. A test may let things happen out of turn, late, twice, or not at all.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from gristmill.backends.simulated.parts import Call, Happening, Worker, pretended_group
from gristmill.backends.simulated.world import KILLED, LEDGER, SOURCE, World, parcel_of
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.faults import Fault
from gristmill.engine.plan import Group
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import EngineBug
from gristmill.metrics.snapshot import StageCounts, balance
from gristmill.stages.resources import Resources

TICK_S = 0.1
MIN_TICK_S = 0.001  # a wakeup may be a rounding error away
EXACT = 1 << 20  # seconds are rounded to parts of which sums are exact, in whatever order they are added
STANDSTILL_S = 100.0  # this long without an event is a deadlock: longer than any pause
CIRCLES_S = 2_000.0  # without a finished task, whatever else happens


@dataclass(frozen=True)
class Deed:
    """What a worker does with one task: outputs of these sizes, the first `streamed` of them one by one."""

    sizes: tuple[int, ...] = (1,)
    streamed: int = 0
    service_s: float = 0.01
    failure: Literal["", "raises", "transient", "dies"] = ""
    crumb: e.Crumb | None = None
    cause: str = "killed by SIGSEGV"  # of its end, if it dies


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
    return pretended_group(
        index,
        f"stage_{index}",
        Resources() if resources is None else resources,
        batch_size=batch_size,
        num_workers=num_workers,
        deadline_s=deadline_s,
        **further,
    )


class VirtualRun(World):
    """One run. `events` and `commands` are everything that went in and came out, in order.

    `done` are source partitions an earlier run has committed: this one goes on without them. `setup_s` is of every
    worker, or of those of each group.
    """

    def __init__(
        self,
        groups: tuple[Group, ...],
        sources: Iterable[int],
        script: Script | None = None,
        *,
        config: SchedulerConfig | None = None,
        setup_s: float | tuple[float, ...] = 0.01,
        done: Collection[int] = (),
    ) -> None:
        sizes = {index: size for index, size in enumerate(sources) if index not in done}
        # Documents have passed every stage before, so that what a script lets fail does not stop the run.
        passed = (True,) * sum(len(group.names) for group in groups)
        config = replace(config or SchedulerConfig(num_sources=len(sizes)), passed_before=passed)
        super().__init__(groups, config, sizes, "p{}".format)
        self.script: Script = script or (lambda _group, _assignment: Deed())
        self._setup_s = setup_s if isinstance(setup_s, tuple) else (setup_s,) * len(groups)
        self.events: list[e.Event] = []
        self.commands: list[c.Command] = []
        self.quarantined: dict[str, int] = {}  # item -> how many of its outputs had left before

    # In and out

    def feed(self, *events: e.Event) -> list[c.Command]:
        """Tell the scheduler, check the invariants, carry out the commands."""
        self.events.append(e.Ticked(self.now))
        self.events.extend(events)
        commands = super().feed(*events)
        self.commands.extend(commands)
        return commands

    def decide(self, events: tuple[e.Event, ...]) -> list[c.Command]:
        """Ask the scheduler, and look at it while its commands have not been carried out yet."""
        commands = super().decide(events)
        invariants.check(self.scheduler, commands)
        return commands

    def join(self, *, cpus: float = 2, gpu_memory_gb: tuple[float, ...] = (), memory_bytes: int = 1 << 40) -> None:
        """Let a machine join."""
        self.feed(e.NodeJoined(len(self.nodes), cpus, gpu_memory_gb, memory_bytes))

    def lose_outputs(self, root: int) -> list[c.Command]:
        """Be unable to commit a partition, because what came out at its end is gone; return the answer."""
        self.writing.pop(root).void = True
        for output in self.commits.pop(root).outputs:
            self.data.release(output.payload)
        return self.feed(e.OutputsLost(root))

    def lose_node(self, node: int) -> None:
        """Take a machine away with all its workers and data; one with the same shape may join later."""
        self.feed(self.lose_machine(node))

    def lose(self, worker: int, cause: str = "killed", crumb: e.Crumb | None = None) -> None:
        """Let a worker die."""
        self.bury(self.workers[worker])
        self.feed(e.WorkerLost(worker, cause, crumb))

    def fail_setup(self, worker: int) -> None:
        """Let a worker that is starting fail."""
        self.bury(self.workers[worker])
        self.feed(e.WorkerSetupFailed(worker, "no model"))

    def fail_task(self, worker: int, *, transient: bool = False, lane: int = 0) -> None:
        """Let a running task of a worker raise."""
        record = self.workers[worker]
        call = record.running[lane % len(record.running)]
        self.feed(self._raised(record, call, Fault.TRANSIENT if transient else Fault.DOCUMENT))

    def _raised(self, worker: Worker, call: Call, fault: Fault) -> e.Event:
        task = call.tasks[0].task
        self.over(worker, call)
        return e.TaskRaised(worker.id, task, f"stage_{worker.group}", "ValueError: no", fault)

    def last_words(self, worker: int) -> e.Event:
        """What a worker that has a task would say if it finished it now, for a message that comes too late."""
        record = self.workers[worker]
        call = record.running[0]
        deed = self._deed(record.group, call.tasks[0])
        return e.TaskFinished(worker, call.tasks[0].task, self._outputs(record, call, deed), deed.service_s, ())

    def repeat(self, event: e.Event) -> list[c.Command]:
        """Deliver an old message again, with handles of its own; return the answer."""
        if isinstance(event, e.TaskFinished):
            event = e.TaskFinished(
                event.worker, event.task, tuple(map(self._again, event.outputs)), event.useful_s, event.counts
            )
        elif isinstance(event, e.TaskEmitted):
            event = e.TaskEmitted(event.worker, event.task, self._again(event.output))
        elif isinstance(event, e.ListedAgain):
            event = e.ListedAgain(self.source_item(event.item.index), event.attempt)
        elif isinstance(event, e.SourceListed):
            event = e.SourceListed(tuple(self.source_item(item.index) for item in event.items))
        return self.feed(event)

    def _again(self, output: e.Output) -> e.Output:
        root = int(output.item_id[1:].partition(".")[0])
        payload = self.data.make(output.item_id, output.num_bytes, root=root)
        return e.Output(output.index, output.item_id, output.num_bytes, payload)

    # What may happen next

    def running(self) -> list[int]:
        """Workers that have a task."""
        return [worker.id for worker in self.workers.values() if worker.running]

    def able(self) -> list[int]:
        """Workers that will say something without being told anything."""
        pending = {happening.of.id for happening in self.pending(*self.workers.values())}  # type: ignore[union-attr]
        return [number for number in self.workers if number in pending]

    def act(self, number: int, *, lane: int = 0) -> None:
        """Let a worker that is able do its next thing, in the lane that is due first or another."""
        worker = self.workers[number]
        pending = self.pending(worker)
        lanes = [call.next for call in worker.running]
        # What a worker has to say by itself it says in order; calls in different lanes do not wait for each other.
        said = [happening for happening in pending if happening not in lanes]
        self._let(said[0] if said else pending[lane % len(pending)])

    @property
    def source_notices(self) -> list[Happening]:
        """Answers of the source that are on their way."""
        return self.pending(SOURCE)

    def tell_source(self) -> None:
        """Deliver the next answer of the source."""
        self._let(self.source_notices[0])

    @property
    def notices(self) -> list[Happening]:
        """News of the ledger and of workers that were killed, which may come in any order."""
        return self.pending(LEDGER, KILLED)

    def tell_notice(self, index: int = 0) -> None:
        """Deliver one of the notices."""
        self._let(self.notices[index])

    def _let(self, happening: Happening) -> None:
        event = self.out_of_turn(happening)
        self.feed(*([] if event is None else [event]))

    # What workers do

    def setup_s(self, group: int) -> float:
        """As it was given."""
        return self._setup_s[group]

    def _deed(self, group: int, assignment: c.Assignment) -> Deed:
        if assignment.care is c.Care.CONDEMN:
            return Deed(sizes=(0,) * assignment.skip)
        return self.script(group, assignment)

    def call_begins(self, worker: Worker, call: Call) -> None:
        """The tasks of a call are done one after the other."""
        self._plan(worker, call)

    def may_go_on(self, worker: Worker, call: Call) -> None:
        """A task that streams may send another output, if that is what it waits for."""
        if call.next is None:
            self._plan(worker, call)

    def _plan(self, worker: Worker, call: Call) -> None:
        """Schedule the next thing the task at hand does, if it may."""
        deed = self._deed(worker.group, call.tasks[0])
        if call.emitted >= deed.streamed or call.credits:
            after_s = deed.service_s / (deed.streamed + 1)
            call.next = self.at(after_s, lambda: self._work(worker, call), of=worker)

    def _work(self, worker: Worker, call: Call) -> e.Event:
        assignment, call.next = call.tasks[0], None
        deed = self._deed(worker.group, assignment)
        if call.emitted < deed.streamed:
            output = self._output(worker, assignment, call.emitted, deed)
            call.emitted += 1
            call.credits -= 1
            self._plan(worker, call)
            return e.TaskEmitted(worker.id, assignment.task, output)
        if deed.failure == "dies":
            self.bury(worker)
            return e.WorkerLost(worker.id, deed.cause, deed.crumb)
        if deed.failure:
            return self._raised(worker, call, Fault.TRANSIENT if deed.failure == "transient" else Fault.DOCUMENT)
        outputs, counts = self._outputs(worker, call, deed), self._counts(worker, assignment, deed)
        self.over(worker, call)
        return e.TaskFinished(worker.id, assignment.task, outputs, deed.service_s, (counts,))

    def over(self, worker: Worker, call: Call) -> None:
        """The task at hand is over, whatever it was about to do; the next begins."""
        if call.next is not None:
            call.next.void = True
            call.next = None
        self.end_task(worker, call)
        if call.tasks:
            self._plan(worker, call)

    def _counts(self, worker: Worker, assignment: c.Assignment, deed: Deed) -> StageCounts:
        is_condemned = assignment.care is c.Care.CONDEMN
        if is_condemned:
            self.quarantined[assignment.item_id] = assignment.skip
        made = len(deed.sizes)
        return StageCounts(
            documents_in=1,
            documents_out=made,
            read=int(worker.group == 0),
            created=made if is_condemned else max(0, made - 1),
            written=made if worker.group + 1 == len(self.groups) else 0,
            quarantined=int(is_condemned),
            dropped={"nothing": 1} if not made and not is_condemned else {},
            process_s=round(deed.service_s * EXACT) / EXACT,
        )

    def _outputs(self, worker: Worker, call: Call, deed: Deed) -> tuple[e.Output, ...]:
        made_now = range(call.emitted, len(deed.sizes))
        return tuple(self._output(worker, call.tasks[0], n, deed) for n in made_now)

    def _output(self, worker: Worker, assignment: c.Assignment, index: int, deed: Deed) -> e.Output:
        item_id, size = f"{assignment.item_id}.{index}", deed.sizes[index]
        parcel = self.data.make(item_id, size, root=parcel_of(assignment).root, node=worker.node)
        return e.Output(index, item_id, size, parcel)

    def _list_again(self, command: c.ListAgain) -> None:
        name = f"p{command.root}"
        self.quarantined = {i: n for i, n in self.quarantined.items() if i != name and not i.startswith(f"{name}.")}
        super()._list_again(command)

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
        """Let the next thing happen, or time pass; False if nothing is going to happen."""
        return self.step()

    def events_now(self) -> list[e.Event]:
        """One thing at a time, so that the invariants are checked between any two."""
        return self.next_events() if self.next_due() <= self.now else []

    def next_tick(self) -> float:
        """Time passes in small steps while anything is going on."""
        wakeup = self.scheduler.next_wakeup()
        tick = self.now + (TICK_S if self.next_due() < math.inf else self.config.rescale_interval_s)
        return tick if wakeup is None else min(tick, max(wakeup, self.now + MIN_TICK_S))

    def picture(self) -> str:
        """The queues and workers, for a message."""
        queues = [(g.live, len(g.queue), len(g.delayed), len(g.workers)) for g in self.scheduler.groups]
        return f"(live, queued, delayed, workers) by group {queues}; {len(self.running())} workers hold tasks"

    # The end

    def check_books(self) -> None:
        """Raise EngineBug unless every source partition came out once, whole, and nothing is left over."""
        told = {
            "outcome": (c.Finish("finished"), self.finish),
            "committed": (len(self.commits), self.config.num_sources),
            "published": (sorted(self.published), sorted(self.commits)),
            "kept payloads": (
                sorted(self.data.held),
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
