"""`Simulation`: a pretended cluster whose items are drawn by chance, with an account of every second and byte.

What carries out the scheduler's commands is `World`. What an item is like is left to `chance`, what goes wrong to
`faults`, where the time went to `accounts`.
"""

import dataclasses
import math
from collections.abc import Collection

from gristmill.backends.simulated.accounts import Accounts
from gristmill.backends.simulated.chance import Chance, probes
from gristmill.backends.simulated.faults import Faults
from gristmill.backends.simulated.parts import Call, Worker, pretended_group
from gristmill.backends.simulated.result import Manifest, SimulationResult
from gristmill.backends.simulated.spec import SimulationSpec, as_bytes
from gristmill.backends.simulated.world import World, parcel_of
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.errors import RunFailed

STANDSTILL_S = 3600.0  # of virtual time in which nothing happens, and nothing is going to: a deadlock


class Simulation(World):
    """One simulated run. `done` are source items an earlier one has committed."""

    def __init__(self, spec: SimulationSpec, *, done: Collection[int] = ()) -> None:
        groups = tuple(
            pretended_group(
                i,
                s.name,
                s.resources,
                batch_size=s.batch_size,
                num_workers=s.num_workers,
                may_run_twice=s.may_run_twice,
                lanes=s.lanes,
            )
            for i, s in enumerate(spec.stages)
        )
        left = sorted(set(range(spec.items)) - set(done))
        config = SchedulerConfig(
            num_sources=len(left),
            rescale_interval_s=spec.rescale_interval_s,
            working_copies=0.0,
            passed_before=(True,) * len(groups),  # stages that fail as often as they are told to are not broken
        )
        super().__init__(groups, config, dict.fromkeys(left, as_bytes(spec.source_bytes)), "item-{:06d}".format)
        self.spec = spec
        self.num_events = 0
        self.attempts = 0
        self._quarantined: dict[int, int] = {}  # documents by source item; one that starts over is counted once
        self.chance = Chance(spec)
        self.accounts = Accounts(spec)
        self.manifest = Manifest()
        self._faults = Faults(self)

    def run(self) -> SimulationResult:
        """Run to the end and return the account."""
        self.begin()
        last_news = 0.0
        while self.finish is None:
            last_news = self.now if self.step() else last_news
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

    def events_now(self) -> list[e.Event]:
        """Everything that happens at this moment, counted."""
        events = super().events_now()
        self.num_events += len(events)
        return events

    # Workers

    def setup_s(self, group: int) -> float:
        """As the spec says."""
        return self.spec.stages[group].setup_s

    def _start(self, command: c.StartWorker) -> None:
        super()._start(command)
        self.accounts.started(self.workers[command.worker])

    def bury(self, worker: Worker) -> None:
        """A worker is gone: enter what it did, and what of that was for nothing."""
        super().bury(worker)
        for call in worker.running:
            lost = (self.now - call.since) / worker.lanes
            worker.busy_s += lost
            worker.wasted_s += lost
            worker.killed_s += lost
            self.attempts += 1
        self.accounts.ended(worker, self.now)

    def _recall(self, command: c.RecallTask) -> None:
        # All events of a moment are told at once: the scheduler may have answered one before it came to this death.
        if command.worker in self.workers:
            super()._recall(command)

    # Calls

    def call_begins(self, worker: Worker, call: Call) -> None:
        """The tasks of a call end together, when the work of all of them is done, unless one kills the worker."""
        stage, tasks = self.spec.stages[worker.group], tuple(call.tasks)
        travelling = sum(self.data.move(parcel_of(task), worker.node) for task in tasks)
        link = self.accounts.nodes[worker.node].link
        late_s = stage.dispatch_s + (travelling / as_bytes(link) if link is not None else 0.0)
        work_s = sum(self._work_s(worker.group, task) for task in tasks)
        seconds = self.chance.lasts_s(worker.group, self.now + late_s, work_s)
        fatal = next((found for found in (self._fatal(worker.group, task) for task in tasks) if found), None)
        if fatal is not None:
            self.at(late_s + seconds / 2, lambda: self.kill(worker, "killed by SIGSEGV", fatal[0]), of=worker)
            return
        for _ in tasks:
            self.at(late_s + seconds, lambda: self._ended(worker, call, seconds, len(tasks)), of=worker)

    def _work_s(self, group: int, assignment: c.Assignment) -> float:
        """Seconds of work; a task that is taken apart to find bad documents costs more."""
        work_s = self.chance.service_s(group, assignment.item_id)
        if assignment.care is c.Care.NORMAL:
            return work_s
        if assignment.care is c.Care.STEP:
            return work_s * (2 - _stepped(assignment) / self.spec.documents)
        return 0.0 if assignment.care is c.Care.CONDEMN else work_s * (2 + math.log2(self.spec.documents))

    def place_of(self, worker: Worker) -> e.Crumb | None:
        """Where a worker is that takes a task apart: at one document after the other, then at all of them."""
        if not worker.running or (task := worker.running[0].tasks[0]).care is not c.Care.STEP:
            return None
        documents, begun = self.spec.documents, self.now - worker.running[0].since
        row = _stepped(task) + int(begun / self.chance.service_s(worker.group, task.item_id) * documents)
        return e.Crumb(0, row, row + 1) if row < documents else e.Crumb(0, 0, documents)

    def _fatal(self, group: int, assignment: c.Assignment) -> tuple[e.Crumb | None] | None:
        """Where a worker that takes this task dies: (crumb,), or None if it lives."""
        if group or assignment.care is c.Care.CONDEMN:
            return None
        known = {crumb.first_row for crumb, _ in assignment.condemned}
        rows = [row for row in self._bad(assignment)[1] if row not in known]
        if not rows:
            return None
        return (e.Crumb(0, rows[0], rows[0] + 1) if assignment.care is c.Care.STEP else None,)

    def _ended(self, worker: Worker, call: Call, seconds: float, size: int) -> e.Event:
        """The task at hand is done. All of a call are at the same moment; with the last one the worker goes on."""
        assignment, share = call.tasks[0], seconds / size
        if len(call.tasks) == 1:
            worker.busy_s += seconds / worker.lanes
            self.attempts += 1
        self.end_task(worker, call)
        poison = () if worker.group else self._bad(assignment)[0]
        if poison and assignment.care is c.Care.NORMAL:
            worker.wasted_s += share / worker.lanes
            return e.TaskRaised(worker.id, assignment.task, self.spec.stages[worker.group].name, "poison")
        if poison:
            self.attempts += 1 + probes(range(self.spec.documents), poison)
        outputs = self._outputs(worker, assignment, share)
        return e.TaskFinished(worker.id, assignment.task, outputs, share, ())

    def _bad(self, assignment: c.Assignment) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.chance.bad_documents(parcel_of(assignment).root)

    def _outputs(self, worker: Worker, assignment: c.Assignment, seconds: float) -> tuple[e.Output, ...]:
        parcel = parcel_of(assignment)
        group, name = worker.group, assignment.item_id
        work_s, path_s = self.chance.service_s(group, name) / worker.lanes, parcel.path_s + seconds
        self.accounts.worked(parcel.root, group, work_s, path_s)
        if group == 0:
            bad = sum(map(len, self._bad(assignment)))
            self._quarantined[parcel.root] = bad
            if bad == self.spec.documents:
                return ()
        last = group + 1 == len(self.groups)
        size = as_bytes(self.spec.stages[group].item_bytes)
        count = self.chance.fan_out(group, name)
        made = []
        for i in range(count):
            item_id = f"{name}.{i}" if count > 1 else name
            # The last stage writes: what it makes takes no memory.
            output = self.data.make(item_id, 0 if last else size, root=parcel.root, node=worker.node, path_s=path_s)
            made.append(e.Output(i, item_id, size, output))
        return tuple(made)

    # Source and sink

    def _list_again(self, command: c.ListAgain) -> None:
        self.accounts.lost(command.root)
        super()._list_again(command)

    def write_down(self, commit: c.Commit) -> e.Event:
        """A commit is in the ledger: what was done for its item is done for good."""
        self.manifest.add(commit)
        self.accounts.committed(commit.root)
        return super().write_down(commit)

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
            peak_bytes=tuple(self.data.peak.values()),
            digest=self.manifest.digest(),
        )
        busy = {group.plan.name: group.book.utilisation() for group in scheduler.groups}
        return dataclasses.replace(result, utilisation=busy)


def _stepped(assignment: c.Assignment) -> int:
    """How many documents of a task have been tried alone by an earlier worker."""
    return 0 if assignment.step_from is None else assignment.step_from.first_row
