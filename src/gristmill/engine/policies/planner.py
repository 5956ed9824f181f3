"""How many workers each group should have, and where: the largest throughput that fits.

With R_i the visits group i still has to serve, mu_i the tasks a worker of it serves per second, and x_i its workers,

    maximise theta   subject to   x_i * mu_i >= R_i * theta  for every group,   and the workers fit on the machines.

theta matters only where some ceil(R_i * theta / mu_i) changes, so it is found by bisection with a packing at each step,
then climbed from breakpoint to breakpoint until the next one no longer fits. While the source is long, R is
proportional to visits per source item and theta is steady throughput; as upstream drains its R falls and its workers
move downstream: the end of the stream needs no special case.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from gristmill.engine.policies.packing import Packing, pack
from gristmill.engine.policies.rooms import UNITS, Placed, Room, cpu_units, share_of_gpu
from gristmill.stages.resources import Resources

TOLERANCE = 0.002  # of theta, before the climb makes it exact
LARGE = 128  # machines; on more, what is left over hardly counts, and planning has to be quick
MAX_CLIMB, MAX_CLIMB_LARGE = 64, 2  # steps
EPSILON = 1e-9
MARGIN = 1.03  # a change of workers must promise this much more work, or it is not worth the risk
HORIZON_S = 600.0


class Demand(msgspec.Struct, frozen=True):
    """What one group has to do, and what one worker of it takes.

    `cap` bounds its workers (there is no more work than that), `fixed` is a number nobody may change (the user's, or
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
        """The throughput so many workers give."""
        return math.inf if self.remaining <= 0 else workers * self.rate / self.remaining

    def most(self, num_nodes: int) -> float:
        """The throughput this group can never exceed, whatever there is."""
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

    def attempt(theta: float, *, thorough: bool) -> WorkerPlan | None:
        wanted = {d.group: d.need(theta, nodes) for d in demands}
        packing = pack(wanted, resources, rooms, present, thorough=thorough)
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
    """What so many workers of each group serve together: the slowest group decides."""
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
    """Go on to the next throughput at which some group needs one worker more, as long as it fits."""
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
    """The throughput no schedule can exceed: of every resource, all there is over what one source item costs of it.

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

    While the change takes, only workers that are in both are there:
    theta(min) * min(tau, H) + theta(then) * max(0, H - tau)  >  1.03 * theta(now) * H
    """
    before, after = throughput(demands, now), throughput(demands, then)
    if not math.isfinite(after) or after <= 0:
        return False
    horizon = min(HORIZON_S, 1 / after)  # R counts all that is left, so 1 / theta is how long it takes
    between = throughput(demands, {group: min(count, then.get(group, 0)) for group, count in now.items()})
    gained = between * min(change_s, horizon) + after * max(0.0, horizon - change_s)
    return gained > MARGIN * before * horizon
