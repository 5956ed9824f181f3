"""The workers of a run: starting, draining and placing them. Part of the scheduler, in a file of its own."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.policies.packing import UNITS, Packing, Placed, Room, choose_gpus, cpu_units, pack, share_of_gpu
from gristmill.engine.policies.rates import remaining_visits
from gristmill.engine.state import GroupRecord, NodeRecord, WorkerRecord, WorkerState
from gristmill.stages.resources import Resources

if TYPE_CHECKING:
    from gristmill.engine.scheduler import Scheduler

# How many workers each group should have, and where: the largest throughput that fits.
#
# With R_i the visits group i still has to serve, mu_i the tasks a worker of it serves per second, and x_i its workers,
#
#     maximise theta   subject to   x_i * mu_i >= R_i * theta  for every group,   and the workers fit on the machines.
#
# theta matters only where some ceil(R_i * theta / mu_i) changes, so it is found by bisection with a packing at each
# step, then climbed from breakpoint to breakpoint until the next one no longer fits. While the source is long, R is
# proportional to visits per source item and theta is steady throughput; as upstream drains its R falls and its workers
# move downstream: the end of the stream needs no special case.

TOLERANCE = 0.002  # of theta, before the climb makes it exact
LARGE = 128  # machines; on more, what is left over hardly counts, and planning has to be quick
MAX_CLIMB, MAX_CLIMB_LARGE = 64, 2  # steps
EPSILON = 1e-9
MARGIN = 1.03  # a change of workers must promise this much more work, or it is not worth the risk
HORIZON_S = 600.0


class Demand(msgspec.Struct, frozen=True):
    """What one group has to do, and what one worker of it takes.

    `cap` bounds its workers (there is no more work than that), `fixed` is a number that may not change (the user's, or
    that of a group not measured yet), `per_node` is a number for every machine, `least` is a number it keeps at least.
    """

    group: int
    resources: Resources
    remaining: float
    rate: float
    cap: int | None = None
    fixed: int | None = None
    per_node: int | None = None
    least: int = 1

    def need(self, theta: float, num_nodes: int) -> int:
        """Workers needed for a throughput of theta."""
        if self.fixed is not None:
            return self.fixed
        if self.per_node is not None:
            return num_nodes * self.per_node
        wanted = math.ceil(self.remaining * theta / self.rate - EPSILON) if self.remaining > 0 else 0
        return max(self.least, wanted)

    def theta(self, workers: float) -> float:
        """The throughput this many workers give."""
        return math.inf if self.remaining <= 0 else workers * self.rate / self.remaining

    def most(self, num_nodes: int) -> float:
        """The throughput this group can never exceed, whatever the machines."""
        bounds = (self.cap, self.fixed, None if self.per_node is None else num_nodes * self.per_node)
        return min((self.theta(bound) for bound in bounds if bound is not None), default=math.inf)


class WorkerPlan(msgspec.Struct, frozen=True):
    """Workers of each group, where they go, and the throughput that gives."""

    theta: float
    workers: dict[int, int]
    packing: Packing


Attempt = Callable[[float], WorkerPlan | None]


def plan_workers(demands: Sequence[Demand], rooms: Sequence[Room], present: Sequence[Placed] = ()) -> WorkerPlan | None:
    """Return the best plan, or None if not even one worker of every group fits."""
    resources = {d.group: d.resources for d in demands}
    nodes = len(rooms)

    tried: dict[tuple[int, ...], Packing | None] = {}  # workers are whole: many throughputs need the same ones

    def attempt(theta: float, *, thorough: bool) -> WorkerPlan | None:
        wanted = {d.group: d.need(theta, nodes) for d in demands}
        key = (thorough, *wanted.values())
        if key not in tried:
            tried[key] = pack(wanted, resources, rooms, present, thorough=thorough)
        packing = tried[key]
        return None if packing is None else WorkerPlan(throughput(demands, wanted), wanted, packing)

    quickly, thoroughly = partial(attempt, thorough=False), partial(attempt, thorough=True)
    best = quickly(0.0) or thoroughly(0.0)
    if best is None:
        return None
    ceiling = min(area_bound(demands, rooms), min((d.most(nodes) for d in demands), default=math.inf))
    best = _bisect(quickly, best, ceiling)
    if nodes > LARGE:
        return _climb(quickly, best, demands, ceiling, MAX_CLIMB_LARGE)
    return _climb(thoroughly, _bisect(thoroughly, best, ceiling), demands, ceiling, MAX_CLIMB)


def throughput(demands: Iterable[Demand], workers: dict[int, int]) -> float:
    """The throughput of these workers together: the slowest group decides."""
    return min((d.theta(workers.get(d.group, 0)) for d in demands), default=math.inf)


def _bisect(attempt: Attempt, best: WorkerPlan, ceiling: float) -> WorkerPlan:
    if not math.isfinite(ceiling):
        return best
    top = attempt(ceiling)
    if top is not None:
        return top
    low, high = best.theta, ceiling
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        found = attempt(middle)
        if found is None:
            high = middle
        else:
            best, low = found, max(found.theta, middle)
    return best


def _climb(attempt: Attempt, best: WorkerPlan, demands: Sequence[Demand], ceiling: float, steps: int) -> WorkerPlan:
    """Go on to the next throughput at which some group needs one more worker, as long as it fits."""
    for _ in range(steps):
        if not best.theta < ceiling * (1 - EPSILON):
            return best
        reached = best.theta * (1 + EPSILON)
        following = min(d.theta(best.workers[d.group] + (d.theta(best.workers[d.group]) <= reached)) for d in demands)
        found = attempt(min(following, ceiling))
        if found is None or found.theta <= best.theta:
            return best
        best = found
    return best


def area_bound(demands: Iterable[Demand], rooms: Sequence[Room]) -> float:
    """The throughput no schedule can exceed: for every resource, all there is over what one source item costs.

    U = min over resources d of  C_d / sum_i R_i * r_id / mu_i
    """
    cpus = gpus = 0.0
    memory = max((gb for room in rooms for gb in room.gpu_memory_gb), default=0.0)
    for d in demands:
        seconds = d.remaining / d.rate
        cpus += seconds * cpu_units(d.resources)
        if d.resources.requires_gpu:
            share = share_of_gpu(d.resources, memory) if d.resources.gpus < 1 else round(d.resources.gpus) * UNITS
            gpus += seconds * (share or UNITS)
    bounds = []
    if cpus:
        bounds.append(sum(room.cpus for room in rooms) / cpus)
    if gpus:
        bounds.append(sum(sum(room.gpus) for room in rooms) / gpus)
    return min(bounds, default=math.inf)


def pays(demands: Sequence[Demand], now: dict[int, int], then: dict[int, int], change_s: float) -> bool:
    """Whether changing the workers gets more done by the end, or in the next ten minutes, than leaving them.

    During the change, which takes tau, only workers that are in both are there:
    theta(min) * min(tau, H) + theta(then) * max(0, H - tau)  >  1.03 * theta(now) * H
    """
    before, after = throughput(demands, now), throughput(demands, then)
    if not math.isfinite(after) or after <= 0:
        return False
    horizon = min(HORIZON_S, 1 / after)  # R counts all that is left, so 1 / theta is how long it takes
    between = throughput(demands, {group: min(count, then.get(group, 0)) for group, count in now.items()})
    gained = between * min(change_s, horizon) + after * max(0.0, horizon - change_s)
    return gained > MARGIN * before * horizon


NEUTRAL_RATE = 1.0  # tasks a second of a group not yet seen at work: the same for all
SMALL = 100  # workers; a plan for no more than these takes a few milliseconds
PAUSE_S = 1e-3  # between plans, for every worker: a plan takes about a thirtieth of that


class Fleet:
    """All workers and nodes."""

    def __init__(self, scheduler: "Scheduler") -> None:
        self.scheduler = scheduler
        self.nodes: dict[int, NodeRecord] = {}
        self.rescale_now = True
        self._workers: dict[int, WorkerRecord] = {}
        # The worker, or None if it has ended or never existed. Looked up for nearly every event.
        self.find: Callable[[int], WorkerRecord | None] = self._workers.get
        self._next_worker = 0
        self._last_rescale = 0.0
        self._too_many_since: dict[int, float] = {}  # by group: since when every plan has wanted fewer workers of it

    def add_node(self, event: e.NodeJoined) -> None:
        """Use a machine from now on; one that is in use already has only repeated its message."""
        if event.node in self.nodes:
            return
        self.nodes[event.node] = NodeRecord(event.node, event.cpus, event.gpu_memory_gb, event.memory_bytes)
        self.rescale_now = True

    def remove_node(self, node: int) -> None:
        """Forget a machine; its workers have been removed already."""
        self.nodes.pop(node, None)
        self.rescale_now = True

    # One worker

    def start(self, group: GroupRecord, *, at: Placed | None = None, replaces: int | None = None) -> bool:
        """Start a worker where it was planned, or where it fits best; False if its GPUs are not free now."""
        resources = group.plan.resources
        nodes = [self.nodes[at.node]] if at is not None else list(self.nodes.values())
        for node in sorted(nodes, key=lambda n: (n.cpus_used - n.cpus, n.id)):
            gpus = at.gpus if at is not None else choose_gpus(resources, node.gpu_free, node.gpu_memory_gb)
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
            group.book.most_workers = max(group.book.most_workers, len(group.workers))
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
        self.scheduler.recalls.recall(worker, all_of_it=True)
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
        """Whether a group has work and no worker to do it: others have to make room for it."""
        return any(group.queue and not group.crew.num_staying for group in self.scheduler.groups)

    # All of them

    def rescale_if_due(self) -> None:
        """Start and drain workers, if something has changed or enough time has passed."""
        if self.nodes and self.scheduler.now >= self.next_rescale():
            self.rescale_now = False
            self._last_rescale = self.scheduler.now
            self._rescale()

    def next_rescale(self) -> float:
        """When workers are planned next. Plans for many workers are rarer, so that planning never fills the time."""
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
        # CPUs are compressible: if one worker of every group does not fit, plan with more CPUs than there are.
        plan = plan_workers(demands, self._rooms(active, roomy=False), present)
        return plan or plan_workers(demands, self._rooms(active, roomy=True), present)

    def _kept_for_now(self, plan: WorkerPlan) -> dict[int, int]:
        """The workers of groups that have had too many of them for less time than setting one up takes.

        Upstream may only pause. Giving up a worker only once it has been idle for the tau it took to set up never costs
        more than twice what perfect foresight would. Once the source has ended, none will be needed back.
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
        """The machines, with CPUs for the workers their GPUs have room for and, if `roomy`, one of each other group."""
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

        Until it is measured, a group keeps its first number of workers; that comes from a neutral rate, or is all of a
        resource that no other group wants. What it has shown so far bounds the others: they need not be faster.
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
        """How many workers fit if a group is the only one to want a resource; None if there are others."""
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

        A group without workers always gets one: workers that stand where the plan has put it move, or it would wait
        for ever.
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
        """Drain the workers the plan does not keep, except those that have hardly begun."""
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
        """Not even one worker of every group fits on the GPUs: groups with work and no worker come first.

        Downstream before upstream. If such a group does not fit, what the others give up is kept for it: otherwise they
        would take it back at once, and the group would never have its turn.
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
    """The order in which workers keep their places if not all can: among equals the idle ones lose theirs first."""
    return sorted(workers, key=lambda worker: not worker.assigned)
