"""The workers of a run: starting, draining and placing them. Part of the scheduler, in a file of its own."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.crew import WorkerRecord, WorkerState
from gristmill.engine.policies.planner import Demand, WorkerPlan, pays, plan_workers
from gristmill.engine.policies.rates import remaining_visits
from gristmill.engine.policies.rooms import Placed, Room, place
from gristmill.engine.state import GroupRecord, NodeRecord

if TYPE_CHECKING:  # the two halves of one object: the scheduler owns the fleet
    from gristmill.engine.scheduler import Scheduler

NEUTRAL_RATE = 1.0  # tasks a second of a group nobody has seen at work: all are alike
SMALL = 100  # workers; a plan for no more than these takes a few milliseconds
PAUSE_S = 1e-3  # between plans, for every worker: a plan takes about a thirtieth of that


class Fleet:
    """All workers and nodes."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.nodes: dict[int, NodeRecord] = {}
        self.rescale_now = True
        self._workers: dict[int, WorkerRecord] = {}
        # The worker, or None if it has ended or never was. Asked for with every piece of news.
        self.find: Callable[[int], WorkerRecord | None] = self._workers.get
        self._next_worker = 0
        self._last_rescale = 0.0
        self._too_many_since: dict[int, float] = {}  # by group: since when every plan has wanted fewer workers of it

    def add_node(self, event: e.NodeJoined) -> None:
        """Use a machine from now on; one that is in use already has only repeated itself."""
        if event.node in self.nodes:
            return
        self.nodes[event.node] = NodeRecord(event.node, event.cpus, event.gpu_memory_gb, event.memory_bytes)
        self.rescale_now = True

    def remove_node(self, node: int) -> None:
        """Forget a machine; its workers have been removed before."""
        self.nodes.pop(node, None)
        self.rescale_now = True

    # One worker

    def start(self, group: GroupRecord, *, at: Placed | None = None, replaces: int | None = None) -> bool:
        """Start a worker where it was planned, or where it fits best; False if its GPUs are not free now."""
        resources = group.plan.resources
        nodes = [self.nodes[at.node]] if at is not None else list(self.nodes.values())
        for node in sorted(nodes, key=lambda n: (n.cpus_used - n.cpus, n.id)):
            gpus = at.gpus if at is not None else place(resources, node.gpu_free, node.gpu_memory_gb)
            if gpus is None or any(node.gpu_free[gpu] < units for gpu, units in gpus):
                continue
            worker = WorkerRecord(self._next_worker, group.plan.index, node.id, gpus, replaces=replaces)
            worker.state_since = self.scheduler.now
            self._next_worker += 1
            node.cpus_used += resources.cpus
            for gpu, units in gpus:
                node.gpu_free[gpu] -= units
            self._workers[worker.id] = worker
            group.crew.add(worker)
            group.book.units = (group.book.units[0], sum(units for _, units in gpus))
            self.scheduler.out.append(
                c.StartWorker(
                    worker.id,
                    group.plan.index,
                    node.id,
                    tuple(gpu for gpu, _ in gpus),
                    tuple(sorted(group.learnt.items())),
                )
            )
            return True
        return False

    def drain(self, worker: WorkerRecord) -> None:
        """Give a worker nothing more; it ends when it has finished what it runs."""
        self.scheduler.dispatcher.recall(worker, all_of_it=True)
        self.scheduler.groups[worker.group].crew.drain(worker)
        worker.state_since = self.scheduler.now
        self.scheduler.out.append(c.DrainWorker(worker.id))

    def remove(self, worker: WorkerRecord) -> None:
        """A worker has ended: give back what it occupied."""
        group = self.scheduler.groups[worker.group]
        del self._workers[worker.id]
        group.crew.remove(worker)
        node = self.nodes.get(worker.node)
        if node is not None:
            node.cpus_used -= group.plan.resources.cpus
            for gpu, units in worker.gpus:
                node.gpu_free[gpu] += units
        self.rescale_now = True
        self.scheduler.caretaker.worker_may_be_worn()

    def is_waited_for(self) -> bool:
        """Whether a group has work and nobody to do it: others have to make room for it."""
        return any(group.queue and not group.crew.num_staying for group in self.scheduler.groups)

    # All of them

    def rescale_if_due(self) -> None:
        """Start and drain workers, if something has changed or enough time has passed."""
        if self.nodes and self.scheduler.now >= self.next_rescale():
            self.rescale_now = False
            self._last_rescale = self.scheduler.now
            self._rescale()

    def next_rescale(self) -> float:
        """When workers are planned next. Plans for many are rarer, so that planning never fills the time."""
        usual = 0.0 if self.rescale_now else self.scheduler.config.rescale_interval_s
        workers = len(self._workers)
        return self._last_rescale + max(usual, PAUSE_S * workers if workers > SMALL else 0.0)

    def _rescale(self) -> None:
        s = self.scheduler
        active = [index for index in range(len(s.groups)) if not self._is_over(index)]
        for index, group in enumerate(s.groups):
            if index not in active:
                for worker in _staying(group):
                    if worker.state is WorkerState.READY:
                        self.drain(worker)
        demands = [self._demand(index, active) for index in active]
        workers = _busy_first(worker for index in active for worker in _staying(s.groups[index]))
        present = [Placed(w.group, w.node, w.gpus) for w in workers]
        plan = self._plan(demands, active, present)
        if plan is None:
            self._take_turns(active)
            return
        kept = self._kept_for_now(plan)
        if kept:
            demands = [
                msgspec.structs.replace(demand, least=kept.get(demand.group, demand.least)) for demand in demands
            ]
            plan = self._plan(demands, active, present) or plan
        self._carry_out(plan, demands)

    def _plan(self, demands: list[Demand], active: list[int], present: list[Placed]) -> WorkerPlan | None:
        # CPUs are compressible: if one worker of every group does not fit, it is on more CPUs than there are.
        plan = plan_workers(demands, self._rooms(active, roomy=False), present)
        return plan or plan_workers(demands, self._rooms(active, roomy=True), present)

    def _kept_for_now(self, plan: WorkerPlan) -> dict[int, int]:
        """The workers of groups that have too many of them, but not for as long as setting one up takes.

        Upstream may only pause. Who gives up what it cost tau to set up after it was of no use for tau never pays more
        than twice what somebody who knew the future would. Once the source has ended nothing is needed back.
        """
        s = self.scheduler
        now = {group: s.groups[group].crew.num_staying for group in plan.workers}
        shrinking = [group for group, count in plan.workers.items() if count < now[group]]
        self._too_many_since = {group: self._too_many_since.get(group, s.now) for group in shrinking}
        return {
            group: now[group]
            for group, since in self._too_many_since.items()
            if s.now - since < s.groups[group].setup_s and not s.source_exhausted
        }

    def _rooms(self, active: list[int], *, roomy: bool) -> list[Room]:
        """The machines, each with CPUs for the workers its GPUs have room for, and if `roomy` one of every group."""
        resources = [self.scheduler.groups[index].plan.resources for index in active]
        rooms = []
        for node in self.nodes.values():
            on_gpus = sum(r.cpus * node.gpu_workers(r) for r in resources if r.requires_gpu)
            one_each = sum(r.cpus for r in resources if not r.requires_gpu) if roomy else 0.0
            rooms.append(node.room(at_least=on_gpus + one_each))
        return rooms

    def _is_over(self, index: int) -> bool:
        """Whether a group needs no worker: nothing is left for it, or its turn has not come."""
        s = self.scheduler
        waits_for_barrier = s.config.barrier and index > 0 and not s.group_finished(index - 1)
        return s.group_finished(index) or waits_for_barrier

    def _demand(self, index: int, active: list[int]) -> Demand:
        """What a group has to do and how fast it is.

        Before it is measured it keeps its first number of workers; that number comes from a neutral rate, or is all of
        a resource that no other group wants. What it has shown so far bounds the others: they need not be faster.
        """
        s = self.scheduler
        group, rate = s.groups[index], s.groups[index].rate
        unlisted = 0 if s.source_exhausted else max(0, s.config.num_sources - s.sources_listed)
        visits = remaining_visits([g.live for g in s.groups], [g.rate.fan_out() for g in s.groups], unlisted)[index]
        a_call = 1 if group.plan.has_sized_batches else group.plan.batch_size  # a large task may be a call by itself
        useful = max(1, math.ceil(visits / (a_call * group.plan.lanes)))
        running_s = group.running_s(s.now)
        fixed, staying = group.plan.num_workers, group.crew.num_staying
        if fixed is None and not rate.is_known:
            sole = self._sole_share(index, active)
            if not staying and sole is None:
                return Demand(index, group.plan.resources, visits, NEUTRAL_RATE, cap=useful)
            fixed = max(staying, min(useful, sole or 0))
        if fixed is None:
            return Demand(index, group.plan.resources, visits, rate.per_worker(running_s), cap=useful)
        seen = staying > 0 and (rate.completions > 0 or bool(running_s))
        shown = rate.per_worker(running_s) if seen else NEUTRAL_RATE
        return Demand(index, group.plan.resources, visits if seen else 0.0, shown, fixed=fixed)

    def _sole_share(self, index: int, active: list[int]) -> int | None:
        """All of a resource for the one group that wants it; None if there are others."""
        mine = self.scheduler.groups[index].plan.resources
        others = [self.scheduler.groups[i].plan.resources for i in active if i != index]
        if any(other.requires_gpu == mine.requires_gpu for other in others):
            return None
        if mine.requires_gpu:
            return max(1, sum(node.gpu_workers(mine) for node in self.nodes.values()))
        cpus = sum(node.cpus for node in self.nodes.values()) - sum(other.cpus for other in others)
        return max(1, int(cpus / mine.cpus)) if mine.cpus else 1

    def _carry_out(self, plan: WorkerPlan, demands: list[Demand]) -> None:
        """Start what is missing and drain what is too many or in the way, if that pays.

        A group without workers always gets one: others that stand where the plan has put it move, or it would wait for
        ever.
        """
        s = self.scheduler
        now = {group: s.groups[group].crew.num_staying for group in plan.workers}
        growing = [group for group, count in plan.workers.items() if count > now[group]]
        change_s = max((s.groups[group].setup_s for group in growing), default=0.0)
        worth = any(not now[group] for group in growing) or pays(demands, now, plan.workers, change_s)
        if worth and growing:
            self._drain_all_but(plan.packing.kept)
        for worker in plan.packing.new:
            group = s.groups[worker.group]
            if (worth or not group.rate.is_known) and plan.workers[worker.group] > group.crew.num_staying:
                self.start(group, at=worker)

    def _drain_all_but(self, kept: list[Placed]) -> None:
        """Drain the workers the plan does not keep; none that has hardly begun."""
        places = Counter(kept)
        for group in self.scheduler.groups:
            for worker in _busy_first(_staying(group)):
                place = Placed(worker.group, worker.node, worker.gpus)
                if places[place]:
                    places[place] -= 1
                elif worker.state is WorkerState.READY and self._has_paid_off(group, worker):
                    self.drain(worker)

    def _has_paid_off(self, group: GroupRecord, worker: WorkerRecord) -> bool:
        return self.scheduler.now - worker.ready_at >= 2 * group.setup_s

    def _take_turns(self, active: list[int]) -> None:
        """Not even one worker of every group fits on the GPUs: who has work waiting and nobody to do it comes first.

        Downstream before upstream. If it does not fit, what the others give up is kept for it: else they would take it
        back at once, and it would never have its turn.
        """
        s = self.scheduler
        without = [s.groups[index] for index in active if not s.groups[index].crew.num_staying]
        unplaced = [group for group in reversed(without) if group.queue and not self.start(group)]
        for group in without:
            if not (unplaced and group.plan.resources.requires_gpu) and not group.crew.num_staying:
                self.start(group)
        for group in unplaced:
            self._make_room(group)

    def _make_room(self, group: GroupRecord) -> None:
        """Two groups that cannot share a GPU take turns: an idle worker makes room for one that has work waiting."""
        s = self.scheduler
        if not group.queue or any(w.state is WorkerState.DRAINING for w in self._workers.values()):
            return
        for worker in self._workers.values():
            other = s.groups[worker.group]
            if other is not group and worker.gpus and worker.state is WorkerState.READY and not worker.assigned:
                self.drain(worker)
                return


def _staying(group: GroupRecord) -> list[WorkerRecord]:
    return [worker for worker in group.workers.values() if worker.state is not WorkerState.DRAINING]


def _busy_first(workers: Iterable[WorkerRecord]) -> list[WorkerRecord]:
    """Who keeps a place if not all can: of those in like places the idle are the first to go."""
    return sorted(workers, key=lambda worker: not worker.assigned)
