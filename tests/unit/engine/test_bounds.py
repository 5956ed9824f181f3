"""The bound is what arithmetic says on cases small enough to do by hand."""

import pytest

from gristmill.engine.account import Work, makespan_bound
from gristmill.engine.policies.packing import UNITS, Room
from gristmill.stages.resources import Resources


def room(cpus, *gpu_memory_gb):
    return Room(0, cpus * UNITS, [UNITS] * len(gpu_memory_gb), gpu_memory_gb)


def test_work_without_setup_is_spread_evenly():
    works = [Work(Resources(), 30.0), Work(Resources(cpus=2), 10.0)]

    assert makespan_bound(works, [room(4), room(1)]) == pytest.approx((30 + 2 * 10) / 5)


def test_every_worker_that_is_needed_pays_its_setup():
    # T = 20: 100 s of work after 10 s of set-up need 10 workers, which occupy 10 * 20 s of ten CPUs.
    assert makespan_bound([Work(Resources(), 100.0, setup_s=10.0)], [room(10)]) == pytest.approx(20.0)


def test_no_stage_is_faster_than_its_cap_allows():
    assert makespan_bound([Work(Resources(), 100.0, setup_s=5.0, cap=2)], [room(64)]) == pytest.approx(55.0)


def test_nothing_ends_before_its_longest_item():
    assert makespan_bound([Work(Resources(), 10.0)], [room(10)], longest_path_s=7.0) == 7.0


def test_gpus_are_a_resource_of_their_own():
    works = [Work(Resources(cpus=1), 8.0), Work(Resources(cpus=1, gpus=0.5), 12.0)]

    assert makespan_bound(works, [room(100, 80.0)]) == pytest.approx(6.0)
    assert makespan_bound([Work(Resources(cpus=0, gpu_memory_gb=20), 12.0)], [room(1, 80.0)]) == pytest.approx(3.0)


def test_nothing_to_do_takes_no_time():
    assert makespan_bound([Work(Resources(), 0.0, setup_s=40.0)], [room(1)]) == 0.0


def test_one_worker_that_takes_long_to_start_is_enough_for_little_work():
    assert makespan_bound([Work(Resources(), 1.0, setup_s=10.0)], [room(1)]) == pytest.approx(11.0)
    assert makespan_bound([Work(Resources(), 0.5)], [room(1)]) == pytest.approx(0.5)


def test_where_gpus_differ_the_largest_is_what_a_request_in_gigabytes_is_a_share_of():
    assert makespan_bound([Work(Resources(cpus=0, gpu_memory_gb=20), 12.0)], [room(1, 40.0, 80.0)]) == pytest.approx(
        1.5
    )
