"""The throughput no placement of workers can exceed, with GPUs and machines taken as the boxes they are.

`fleet.area_bound` adds up resources as if they were a liquid; but 0.6 + 0.6 of a GPU never fits, and 11 workers of
16 CPUs on a machine of 182 leave 6 over. Here a machine is used in *patterns*: whole numbers of workers that fit on it.
With q_p machines used in pattern p, which has n_pi workers of group i,

    maximise theta   subject to   sum_p q_p n_pi >= max(1, R_i theta / mu_i),   sum_p q_p <= machines,   q >= 0

This is a linear programme with too many columns to write down, so they are generated as needed: the prices of the
programme say what a worker of each group is worth, and an integer programme finds the pattern worth most. The most that
pattern could earn bounds what is still to be gained, so the result is a bound even if the search is stopped early.

Workers are whole: the throughput of a plan is k mu_i / R_i for some group and some k, so the highest of these whose
workers fit into fractions of machines is a bound as well, and a closer one.

For judging plans, not for making them: needs scipy (`pip install 'gristmill[plan]'`), which no run does.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gristmill.engine.fleet import Demand, plan_workers
from gristmill.engine.policies.packing import UNITS, Placed, Room, cpu_units, gpu_amount
from gristmill.errors import require

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

TOLERANCE = 1e-4  # of theta
MAX_ROUNDS = 200
MAX_GPU_PATTERNS = 400  # beyond that GPUs count as a liquid: a looser bound, and still one
MOST_WORKERS = 10_000.0  # of one group on one machine


@dataclass(frozen=True)
class _Machine:
    """A kind of machine. `on_gpu` are the ways to fill one GPU: workers of each group."""

    count: int
    cpus: int
    gpus: int
    memory_gb: float
    on_gpu: tuple[tuple[int, ...], ...]


@dataclass
class _Search:
    """The linear programme over the patterns found so far, and how more are found.

    It maximises t with workers of group i >= slope_i t and >= least_i.
    """

    optimize: "ModuleType"
    demands: Sequence[Demand]
    machines: Sequence[_Machine]
    patterns: list[tuple[int, tuple[int, ...]]]  # (machine, workers of each group)

    def bounds(self, slope: Sequence[float], least: Sequence[float], ceiling: float) -> Iterator[tuple[float, float]]:
        """Yield what is reached and what cannot be exceeded, closer and closer."""
        highest = ceiling
        for _ in range(MAX_ROUNDS):
            reached, worth, earned = self._solve(slope, least, ceiling)
            still = 0.0
            for kind, machine in enumerate(self.machines):
                value, pattern = _best_pattern(self.optimize, self.demands, machine, worth)
                still += machine.count * max(0.0, value - earned[kind])
                if (kind, pattern) not in self.patterns:
                    self.patterns.append((kind, pattern))
            highest = min(highest, reached + still)
            yield reached, highest
            if highest - reached <= TOLERANCE * reached:
                return

    def _solve(
        self, slope: Sequence[float], least: Sequence[float], ceiling: float
    ) -> "tuple[float, NDArray[np.float64], NDArray[np.float64]]":
        """Return t, what a worker of each group is worth, and what a machine of each kind earns."""
        groups, kinds = len(self.demands), len(self.machines)
        workers = np.array([pattern for _, pattern in self.patterns], dtype=float).T  # [G, P]
        is_kind = np.zeros((kinds, len(self.patterns)))
        is_kind[[kind for kind, _ in self.patterns], range(len(self.patterns))] = 1
        rows = np.vstack(
            [
                np.hstack([np.array(slope)[:, None], -workers]),
                np.hstack([np.zeros((groups, 1)), -workers]),
                np.hstack([np.zeros((kinds, 1)), is_kind]),
            ]
        )
        limits = [*[0.0] * groups, *(-number for number in least), *(float(m.count) for m in self.machines)]
        cost = np.zeros(rows.shape[1])
        cost[0] = -1.0
        variables = [(0, ceiling), *[(0, None)] * len(self.patterns)]
        found = self.optimize.linprog(cost, A_ub=rows, b_ub=limits, bounds=variables, method="highs")
        prices = -found.ineqlin.marginals
        return float(-found.fun), prices[:groups] + prices[groups : 2 * groups], prices[2 * groups :]


def pattern_bound(demands: Sequence[Demand], rooms: Sequence[Room], *, whole_workers: bool = True) -> float:
    """Return a throughput that no plan for these machines exceeds; 0 if not even one worker of every group fits.

    With `whole_workers` the workers of each group are a whole number in all, as they are in every plan: a throughput is
    then a breakpoint of some group, and the highest one whose workers fit is looked for.
    """
    optimize = require("scipy.optimize", extra="plan")
    plan = plan_workers(demands, rooms)
    if plan is None:
        return 0.0
    nodes = len(rooms)
    machines, kind_of = _machines(demands, rooms)
    start = {(kind_of[node], pattern) for node, pattern in _patterns_of(demands, plan.packing.new).items()}
    search = _Search(optimize, demands, machines, sorted(start))
    slope = [d.remaining / d.rate if d.fixed is None and d.per_node is None else 0.0 for d in demands]
    least = [float(d.need(0.0, nodes)) for d in demands]
    *_, (_, bound) = search.bounds(slope, least, min(d.most(nodes) for d in demands))
    return _highest_breakpoint(search, nodes, plan.theta, bound) if whole_workers else bound


def _highest_breakpoint(search: _Search, nodes: int, low: float, high: float) -> float:
    """The highest throughput in (low, high] at which the workers that each group needs may still fit."""
    points = {low}
    for d in search.demands:
        if d.remaining > 0 and d.fixed is None and d.per_node is None:
            first, last = d.need(low, nodes), d.need(high, nodes)
            points |= {d.theta(number) for number in range(first, last + 1) if low < d.theta(number) <= high}
    ordered = sorted(points)
    fits, fails = 0, len(ordered)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if _may_fit(search, [float(d.need(ordered[middle], nodes)) for d in search.demands]):
            fits = middle
        else:
            fails = middle
    return ordered[fits]


def _may_fit(search: _Search, wanted: list[float]) -> bool:
    """Whether the `wanted` workers fit if machines may be divided between patterns."""
    for reached, highest in search.bounds(wanted, [0.0] * len(wanted), 2.0):
        if reached >= 1 - TOLERANCE:
            return True
        if highest < 1 - TOLERANCE:
            return False
    return True


def _machines(demands: Sequence[Demand], rooms: Sequence[Room]) -> tuple[list[_Machine], dict[int, int]]:
    """The kinds of machine there are, and the kind of every node."""
    shapes = {r.node: (r.cpus, len(r.gpus), max(r.gpu_memory_gb, default=0.0)) for r in rooms}
    counts = Counter(shapes.values())
    kinds = list(counts)
    machines = [_Machine(counts[k], *k, tuple(_on_gpu(demands, k[2]))) for k in kinds]
    return machines, {node: kinds.index(shape) for node, shape in shapes.items()}


def _patterns_of(demands: Sequence[Demand], placed: Sequence[Placed]) -> dict[int, tuple[int, ...]]:
    """What a plan has put on every machine: patterns to start from."""
    on_node: dict[int, Counter[int]] = {}
    for worker in placed:
        on_node.setdefault(worker.node, Counter())[worker.group] += 1
    return {node: tuple(counts[d.group] for d in demands) for node, counts in on_node.items()}


def _is_shared(demand: Demand) -> bool:
    return demand.resources.requires_gpu and demand.resources.gpus < 1


def _on_gpu(demands: Sequence[Demand], memory_gb: float) -> list[tuple[int, ...]]:
    """All ways to fill one GPU with shares such that nothing more fits; none if there are too many to list."""
    shares = [gpu_amount(d.resources, memory_gb) if _is_shared(d) else 0 for d in demands]

    def fill(first: int, free: int, counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if first == len(shares):
            if not any(share and share <= free for share in shares):
                yield counts
            return
        share = shares[first]
        for number in range(free // share, -1, -1) if share else (0,):
            yield from fill(first + 1, free - number * share, (*counts, number))

    found: list[tuple[int, ...]] = []
    for pattern in fill(0, UNITS, ()):
        if len(found) == MAX_GPU_PATTERNS:
            return []
        found.append(pattern)
    return found if any(shares) else []


def _best_pattern(
    optimize: "ModuleType", demands: Sequence[Demand], machine: _Machine, worth: "NDArray[np.float64]"
) -> tuple[float, tuple[int, ...]]:
    """Return the most that workers on one machine can be worth, and which workers those are.

    Variables are the workers of each group, then how many GPUs are filled in each way.
    """
    groups, ways = len(demands), len(machine.on_gpu)
    cpus = [float(cpu_units(d.resources)) for d in demands]
    units = [gpu_amount(d.resources, machine.memory_gb) for d in demands]
    rows, limits = [[*cpus, *[0.0] * ways]], [float(machine.cpus)]
    shared = [i for i, d in enumerate(demands) if _is_shared(d)]
    whole = [0.0 if i in shared and ways else units[i] / UNITS for i in range(groups)]
    rows.append([*whole, *[1.0] * ways])
    limits.append(float(machine.gpus))
    for i in shared if ways else ():
        rows.append([*(float(j == i) for j in range(groups)), *(-float(way[i]) for way in machine.on_gpu)])
        limits.append(0.0)
    most = [0.0 if d.resources.requires_gpu and not machine.gpus else MOST_WORKERS for d in demands]
    found = optimize.milp(
        np.concatenate([-worth, np.zeros(ways)]),
        constraints=optimize.LinearConstraint(np.array(rows), ub=np.array(limits)),
        integrality=np.ones(groups + ways),
        bounds=optimize.Bounds(0, np.array([*most, *[float(machine.gpus)] * ways])),
    )
    pattern = tuple(round(count) for count in found.x[:groups])
    return float(-found.mip_dual_bound), pattern
