"""The bound knows what fits into a GPU and a machine, and no plan exceeds it."""

import pytest
from benchmarks.engine.plan_quality import instance, quality

from gristmill.engine.fleet import Demand, area_bound, plan_workers
from gristmill.engine.pattern_bound import pattern_bound
from gristmill.engine.policies.packing import UNITS, Room
from gristmill.stages.resources import Resources


def rooms(count, *, cpus, gpus=0, memory_gb=80.0):
    return [Room(i, cpus * UNITS, [UNITS] * gpus, (memory_gb,) * gpus) for i in range(count)]


def bound(demands, machines, **options):
    return pattern_bound(demands, machines, **options)


def test_two_large_shares_never_fit_on_one_gpu():
    demands = [Demand(0, Resources(cpus=1, gpus=0.6), 1.0, 1.0)]
    machines = rooms(10, cpus=64, gpus=4)

    assert area_bound(demands, machines) == pytest.approx(40 / 0.6)
    assert bound(demands, machines) == pytest.approx(40.0)


def test_shares_that_complement_each_other_do():
    demands = [Demand(i, Resources(cpus=1, gpus=share), 1.0, 1.0) for i, share in enumerate((0.6, 0.4))]

    assert bound(demands, rooms(10, cpus=64, gpus=4)) == pytest.approx(40.0)


def test_what_is_left_of_a_machine_is_of_no_use():
    assert bound([Demand(0, Resources(cpus=5), 1.0, 1.0)], rooms(4, cpus=9)) == pytest.approx(4.0)


def test_memory_of_a_gpu_is_a_share_of_it():
    demands = [Demand(0, Resources(cpus=0, gpu_memory_gb=30), 1.0, 1.0)]

    assert bound(demands, rooms(3, cpus=1, gpus=2, memory_gb=80.0)) == pytest.approx(12.0)


def test_whole_workers_make_it_closer():
    demands = [Demand(0, Resources(cpus=1), 1.0, 1.0), Demand(1, Resources(cpus=1), 1.0, 10.0)]

    assert bound(demands, rooms(1, cpus=4), whole_workers=False) == pytest.approx(3.0)  # the second needs one worker
    assert bound([demands[0], Demand(1, Resources(cpus=1), 1.0, 2.1)], rooms(1, cpus=4)) == pytest.approx(2.1)


def test_a_fixed_number_of_workers_bounds_the_rest():
    demands = [Demand(0, Resources(), 1.0, 1.0, fixed=2), Demand(1, Resources(), 1.0, 1.0)]

    assert bound(demands, rooms(2, cpus=8)) == pytest.approx(2.0)


def test_nothing_fits_where_nothing_fits():
    assert bound([Demand(0, Resources(gpus=1), 1.0, 1.0)], rooms(2, cpus=8)) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_exceeds_it(seed):
    demands, machines = instance(seed)
    plan = plan_workers(demands, machines)

    assert plan.theta <= bound(demands, machines) * (1 + 1e-9)
    assert bound(demands, machines) <= bound(demands, machines, whole_workers=False) * (1 + 1e-9)
    assert bound(demands, machines, whole_workers=False) <= area_bound(demands, machines) * (1 + 1e-3)


@pytest.mark.slow
def test_plans_for_many_machines_are_next_to_the_bound():
    """`python -m benchmarks.engine.plan_quality` asks 500 seeds."""
    assert min(quality(seed)[1] for seed in range(20)) >= 0.99
