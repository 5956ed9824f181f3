"""The plan is the best there is: equal to brute force where that can be computed, and to known production figures."""

import math
import random

import pytest

from gristmill.engine.fleet import Demand, area_bound, pays, plan_workers, throughput
from gristmill.engine.policies.packing import UNITS, Room, cpu_units
from gristmill.stages.resources import Resources

# Facts published with the tests of another scheduler: cpus and gpus a worker, items a second, workers fixed per node.
VIDEO = [
    (0.25, 0, 0.67, 4),
    (1, 0, 4000, None),
    (3, 0, 0.77, None),
    (1, 0.25, 3.55, None),
    (5, 0, 0.28, None),
    (16, 0, 0.034, None),
    (1, 4, 0.033, None),
    (1, 1, 0.98, None),
    (0.25, 0, 0.016, 8),
]
LARGE_MODEL = [
    (0.25, 0, 0.45, 4),
    (1, 0, 4000, None),
    (1, 0.1, 0.42, None),
    (1, 0.25, 1.8, None),
    (5, 0, 0.28, None),
    (3, 0, 0.082, None),
    (1, 8, 0.033, None),
    (1, 1, 0.98, None),
    (0.25, 0, 0.016, 8),
]


def demands_of(table):
    return [
        Demand(i, Resources(cpus=cpus, gpus=gpus), 1.0, rate, per_node=per_node)
        for i, (cpus, gpus, rate, per_node) in enumerate(table)
    ]


def rooms(count, *, cpus=182, gpus=8, memory_gb=80.0):
    return [Room(node, round(cpus * UNITS), [UNITS] * gpus, (memory_gb,) * gpus) for node in range(count)]


@pytest.mark.parametrize(("table", "nodes", "best"), [(VIDEO, 10, 0.627), (LARGE_MODEL, 3, 0.066)])
def test_production_tables_reach_the_best_integer_packing(table, nodes, best):
    assert plan_workers(demands_of(table), rooms(nodes)).theta == pytest.approx(best)


@pytest.mark.parametrize("table", [VIDEO, LARGE_MODEL])
def test_on_many_machines_the_plan_is_next_to_the_bound(table):
    machines = rooms(300)

    assert plan_workers(demands_of(table), machines).theta > 0.99 * area_bound(demands_of(table), machines)


def test_memory_of_one_gpu_is_shared_as_the_rates_ask():
    stages = [
        Demand(0, Resources(cpus=0, gpu_memory_gb=1), 1, 1 / 2),
        Demand(1, Resources(cpus=1), 1, 1.0),
        Demand(2, Resources(cpus=0, gpu_memory_gb=10), 1, 1 / 10),
    ]

    assert plan_workers(stages, rooms(1, cpus=64, gpus=1, memory_gb=102.0)).workers == {0: 2, 1: 1, 2: 10}


def test_a_plan_of_many_workers_is_exact_too():
    assert plan_workers([Demand(0, Resources(cpus=3), 2, 3.0)], rooms(1, cpus=1803.36, gpus=0)).workers == {0: 601}


def test_a_group_keeps_what_it_has_to_however_little_it_needs():
    stages = [Demand(0, Resources(cpus=1), 1, 1.0), Demand(1, Resources(cpus=1), 1, 100.0, least=3)]

    assert plan_workers(stages, rooms(1, cpus=8, gpus=0)).workers == {0: 5, 1: 3}


def gpus_after(gpus, wanted):
    """The GPUs of one machine after a worker has taken its share, for every GPU it could take it of."""
    if wanted >= 1:
        whole = [g for g, units in enumerate(gpus) if units == UNITS][: int(wanted)]
        return [tuple(0 if g in whole else u for g, u in enumerate(gpus))] if len(whole) == int(wanted) else []
    units = round(wanted * UNITS)
    return [(*gpus[:g], u - units, *gpus[g + 1 :]) for g, u in enumerate(gpus) if u >= units] if units else [gpus]


def fits(counts, demands, machines):
    """Whether the workers can be placed at all, by trying every way."""
    workers = [d.resources for d, count in zip(demands, counts, strict=True) for _ in range(count)]
    workers.sort(key=lambda r: (-r.gpus, -r.cpus))
    seen = set()

    def go(k, state):
        if k == len(workers):
            return True
        key = (k, tuple(sorted((cpus, tuple(sorted(gpus))) for cpus, gpus in state)))
        if key in seen:
            return False
        seen.add(key)
        return any(
            go(k + 1, [*state[:n], (cpus - cpu_units(workers[k]), left), *state[n + 1 :]])
            for n, (cpus, gpus) in enumerate(state)
            if cpus >= cpu_units(workers[k])
            for left in gpus_after(gpus, workers[k].gpus)
        )

    return go(0, [(r.cpus, tuple(r.gpus)) for r in machines])


def brute_force(demands, machines):
    best = 0.0
    for theta in sorted({k * d.rate / d.remaining for d in demands for k in range(1, 50)}):
        if theta > area_bound(demands, machines) * (1 + 1e-9):
            break
        if not fits([d.need(theta, len(machines)) for d in demands], demands, machines):
            break
        best = theta
    return best


def tiny_instance(seed):
    rng = random.Random(seed)
    gpus = rng.randint(0, 2)
    machines = rooms(rng.randint(1, 3), cpus=rng.randint(3, 8), gpus=gpus)
    demands = []
    for i in range(rng.randint(2, 4)):
        if gpus and rng.random() < 0.6:
            shares = [0.25, 0.3, 0.4, 0.5, 0.6, 1] + [2] * (gpus > 1)
            need = Resources(cpus=rng.choice([0.25, 0.5, 1]), gpus=rng.choice(shares))
        else:
            need = Resources(cpus=rng.choice([0.5, 1, 1, 2, 3]))
        demands.append(Demand(i, need, rng.choice([1, 1, 2, 0.5]), round(rng.uniform(0.2, 3), 2)))
    return demands, machines


@pytest.mark.parametrize("block", range(10))
def test_tiny_plans_equal_brute_force(block):
    for seed in range(block * 20, block * 20 + 20):
        demands, machines = tiny_instance(seed)
        plan = plan_workers(demands, machines)
        assert (plan.theta if plan else 0.0) == pytest.approx(brute_force(demands, machines)), seed


@pytest.mark.parametrize("seed", range(40))
def test_one_more_machine_never_lowers_the_plan(seed):
    demands, machines = tiny_instance(seed)
    before = plan_workers(demands, machines)
    more = plan_workers(demands, [*machines, *(Room(99, m.cpus, list(m.gpus), m.gpu_memory_gb) for m in machines[:1])])

    assert before is None or more.theta >= before.theta * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_planning_again_moves_nobody(seed):
    demands, machines = tiny_instance(seed)
    plan = plan_workers(demands, machines)
    if plan is not None:
        again = plan_workers(demands, machines, plan.packing.new)
        assert again.packing.new == []
        assert again.workers == plan.workers


def test_workers_move_downstream_as_upstream_drains():
    machines = rooms(1, cpus=8, gpus=0)

    def plan(upstream):
        stages = [
            Demand(0, Resources(), upstream, 1.0, cap=max(1, upstream)),
            Demand(1, Resources(), 100, 1.0, cap=100),
        ]
        return plan_workers(stages, machines).workers

    assert plan(100) == {0: 4, 1: 4}
    assert plan(1) == {0: 1, 1: 7}


def test_a_number_the_user_fixed_is_not_changed_and_bounds_the_rest():
    stages = [Demand(0, Resources(), 10, 1.0, fixed=1), Demand(1, Resources(), 10, 1.0)]

    assert plan_workers(stages, rooms(1, cpus=8, gpus=0)).workers == {0: 1, 1: 1}


def test_nothing_is_planned_where_not_even_one_of_each_fits():
    stages = [Demand(i, Resources(cpus=0, gpus=1), 1, 1.0) for i in range(2)]

    assert plan_workers(stages, rooms(1, gpus=1)) is None


def test_throughput_is_that_of_the_slowest_group():
    stages = [Demand(0, Resources(), 2, 1.0), Demand(1, Resources(), 1, 1.0), Demand(2, Resources(), 0, 1.0)]

    assert throughput(stages, {0: 4, 1: 1, 2: 0}) == 1.0
    assert throughput([stages[2]], {}) == math.inf


def stages_with_rest(rest):
    return [Demand(0, Resources(), rest, 1.0), Demand(1, Resources(), rest, 1.0)]


def test_a_change_that_ends_after_the_work_does_not_pay():
    assert not pays(stages_with_rest(4), {0: 3, 1: 1}, {0: 2, 1: 2}, change_s=60.0)


def test_a_change_that_is_over_soon_pays():
    assert pays(stages_with_rest(1000), {0: 3, 1: 1}, {0: 2, 1: 2}, change_s=1.0)


def test_a_change_that_gains_next_to_nothing_does_not_pay():
    stages = [Demand(0, Resources(), 1000, 1.0)]

    assert not pays(stages, {0: 100}, {0: 102}, change_s=0.0)
    assert pays(stages, {0: 100}, {0: 104}, change_s=0.0)


def test_a_change_to_nothing_or_with_nothing_left_does_not_pay():
    stages = stages_with_rest(100)

    assert not pays(stages, {0: 1, 1: 1}, {0: 0, 1: 1}, change_s=0.0)
    assert not pays(stages_with_rest(0), {0: 1, 1: 1}, {0: 5, 1: 5}, change_s=0.0)


def test_a_group_without_workers_serves_nothing():
    assert throughput([Demand(0, Resources(), 1.0, 1.0)], {}) == 0.0


def test_a_number_for_every_machine_is_needed_whatever_the_throughput():
    demand = Demand(0, Resources(), 10.0, 2.0, per_node=3, cap=4)

    assert [demand.need(theta, 2) for theta in (0.0, 100.0)] == [6, 6]
    assert demand.most(2) == demand.theta(4) == 4 * 2.0 / 10.0


def test_the_area_bound_is_that_of_the_scarcer_resource():
    stages = [Demand(0, Resources(cpus=2), 3.0, 0.5), Demand(1, Resources(cpus=1, gpus=0.5), 1.0, 0.25)]

    assert area_bound(stages, rooms(1, cpus=8, gpus=8)) == pytest.approx(8 / (3 / 0.5 * 2 + 1 / 0.25))
    assert area_bound(stages, rooms(1, cpus=80, gpus=1)) == pytest.approx(1 / (0.5 / 0.25))
    assert area_bound([Demand(0, Resources(cpus=0, gpus=2), 1.0, 1.0)], rooms(1, gpus=8)) == pytest.approx(4)
    assert area_bound([Demand(0, Resources(), 0.0, 1.0)], rooms(1)) == math.inf
