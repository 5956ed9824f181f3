"""What is placed fits, what is there stays, and what does not fit is refused."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.engine.policies.packing import UNITS, Placed, Room, cpu_units, pack
from gristmill.stages.resources import Resources


def room(node=0, *, cpus=4.0, gpus=0):
    return Room(node, round(cpus * UNITS), [UNITS] * gpus, (80.0,) * gpus)


def used(packing, resources, rooms):
    """Units taken of every machine and GPU."""
    cpus = {r.node: 0 for r in rooms}
    gpus = {(r.node, g): 0 for r in rooms for g in range(len(r.gpus))}
    for worker in [*packing.kept, *packing.new]:
        cpus[worker.node] += cpu_units(resources[worker.group])
        for gpu, units in worker.gpus:
            gpus[worker.node, gpu] += units
    return cpus, gpus


shapes = st.one_of(
    st.builds(Resources, cpus=st.sampled_from([0.25, 0.5, 1, 2])),
    st.builds(Resources, cpus=st.sampled_from([0, 0.5, 1]), gpus=st.sampled_from([0.1, 0.25, 0.3, 0.6, 1, 2])),
    st.builds(Resources, cpus=st.just(0), gpu_memory_gb=st.sampled_from([5, 33, 80])),
)


@given(
    resources=st.lists(shapes, min_size=1, max_size=4),
    counts=st.lists(st.integers(1, 5), min_size=4, max_size=4),
    machines=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_no_machine_and_no_gpu_is_ever_overfull(resources, counts, machines):
    rooms = [room(node, cpus=cpus, gpus=gpus) for node, (cpus, gpus) in enumerate(machines)]
    shapes_by_group = dict(enumerate(resources))
    packing = pack({g: counts[g] for g in shapes_by_group}, shapes_by_group, rooms)
    if packing is None:
        return
    cpus, gpus = used(packing, shapes_by_group, rooms)
    assert all(cpus[r.node] <= r.cpus for r in rooms)
    assert all(units <= UNITS for units in gpus.values())
    assert [sum(w.group == g for w in packing.new) for g in shapes_by_group] == counts[: len(resources)]


def test_two_workers_of_six_tenths_do_not_share_a_gpu():
    shape = {0: Resources(cpus=0, gpus=0.6)}

    assert pack({0: 2}, shape, [room(gpus=1)]) is None
    assert pack({0: 2}, shape, [room(gpus=2)]).new == [Placed(0, 0, ((0, 6000),)), Placed(0, 0, ((1, 6000),))]


def test_a_share_joins_the_one_that_is_there_and_leaves_the_other_gpu_whole():
    present = [Placed(0, 0, ((1, 2500),))]
    packing = pack({0: 2}, {0: Resources(cpus=0, gpus=0.25)}, [room(gpus=2)], present)

    assert (packing.kept, packing.new) == (present, [Placed(0, 0, ((1, 2500),))])


def test_a_worker_nobody_wants_any_more_is_not_kept():
    shapes = {0: Resources(cpus=1), 1: Resources(cpus=1)}
    packing = pack({0: 1}, shapes, [room()], [Placed(1, 0, ())])

    assert (packing.kept, packing.new) == ([], [Placed(0, 0, ())])


def test_shares_fill_a_gpu_that_is_in_use_before_a_whole_one():
    shapes = {0: Resources(cpus=0, gpus=0.25), 1: Resources(cpus=0, gpus=1)}
    packing = pack({0: 4, 1: 1}, shapes, [room(gpus=2)])

    assert {gpu for w in packing.new if w.group == 0 for gpu, _ in w.gpus} == {1}
    assert [w.gpus for w in packing.new if w.group == 1] == [((0, UNITS),)]


def test_cpu_workers_go_where_no_gpu_would_be_left_without_cpus():
    packing = pack({0: 2}, {0: Resources(cpus=2)}, [room(0, cpus=4, gpus=1), room(1, cpus=4)])

    assert {worker.node for worker in packing.new} == {1}


def test_workers_that_are_there_keep_their_places():
    shape = {0: Resources(cpus=1)}
    present = [Placed(0, 1, ()), Placed(0, 1, ())]
    packing = pack({0: 3}, shape, [room(0), room(1)], present)

    assert packing.kept == present
    assert len(packing.new) == 1


def test_everything_moves_only_if_nothing_else_fits():
    shapes = {0: Resources(cpus=0, gpus=0.5), 1: Resources(cpus=0, gpus=1)}
    apart = [Placed(0, 0, ((0, 5000),)), Placed(0, 0, ((1, 5000),))]
    packing = pack({0: 2, 1: 1}, shapes, [room(gpus=2)], apart)

    assert packing.kept == []
    assert len(packing.new) == 3


def test_a_worker_on_a_machine_that_is_gone_is_placed_anew():
    packing = pack({0: 1}, {0: Resources(cpus=1)}, [room(0)], [Placed(0, 7, ())])

    assert packing.kept == []
    assert packing.new == [Placed(0, 0, ())]


def test_small_shares_fill_what_large_ones_leave():
    # 0.4 twice and 10 of 80 GB once fill a GPU to 0.925; the smaller share alone on its GPUs would waste a fifth.
    resources = {0: Resources(cpus=0, gpu_memory_gb=10), 1: Resources(cpus=0, gpus=0.4)}
    packing = pack({0: 10, 1: 20}, resources, [room(node, gpus=2) for node in range(5)])

    assert packing is not None


@pytest.mark.parametrize(
    ("wanted", "shapes", "machines"),
    [
        ({0: 1, 1: 4}, {0: Resources(cpus=5), 1: Resources(cpus=2)}, [(8, 1), (5, 2)]),
        ({0: 3, 1: 4}, {0: Resources(cpus=3), 1: Resources(cpus=2)}, [(9, 0), (4, 0), (4, 0)]),
        ({0: 2, 1: 2}, {0: Resources(cpus=2, gpus=0.4), 1: Resources(cpus=2, gpus=1)}, [(5, 2), (5, 1)]),
        ({0: 3, 1: 1}, {0: Resources(cpus=3, gpus=0.25), 1: Resources(cpus=3, gpus=1)}, [(8, 1), (7, 2)]),
    ],
)
def test_on_few_machines_a_way_is_found_that_no_order_of_groups_leads_to(wanted, shapes, machines):
    rooms = [room(node, cpus=cpus, gpus=gpus) for node, (cpus, gpus) in enumerate(machines)]
    packing = pack(wanted, shapes, rooms)
    cpus, gpus = used(packing, shapes, rooms)

    assert {g: sum(w.group == g for w in packing.new) for g in wanted} == wanted
    assert all(cpus[r.node] <= r.cpus for r in rooms)
    assert all(units <= UNITS for units in gpus.values())


def test_what_no_way_leads_to_is_given_up():
    shapes = {0: Resources(cpus=0.7), 1: Resources(cpus=1.3)}  # 32 workers, 1.5 CPUs too many

    assert pack({0: 16, 1: 16}, shapes, [room(node, cpus=cpus) for node, cpus in enumerate((11, 7.5, 7, 5))]) is None


def test_every_machine_gets_its_part_where_one_group_after_another_does_not_fit():
    # On each of ten machines 4 GPUs for the first group and 28 CPUs with 3.5 GPUs for the second: no other way.
    resources = {0: Resources(cpus=1, gpus=1), 1: Resources(cpus=1, gpu_memory_gb=10)}
    packing = pack({0: 40, 1: 280}, resources, [room(node, cpus=32, gpus=8) for node in range(10)])

    assert packing is not None
    assert {sum(w.group == 0 for w in packing.new if w.node == node) for node in range(10)} == {4}


GROUPS_OF_32_CPUS = {0: Resources(cpus=5), 1: Resources(cpus=4, gpus=2)}


def machines(count, *, cpus, gpus, first=0):
    return [room(first + number, cpus=cpus, gpus=gpus) for number in range(count)]


def test_workers_that_fit_together_in_certain_numbers_only_are_found_to_fit():
    """4 of 5 CPUs beside 3 of 4 fill a machine of 32 CPUs, and 6 of 5 leave 2: no other mixture is as good."""
    rooms = machines(43, cpus=32, gpus=8)

    assert pack({0: 210, 1: 72}, GROUPS_OF_32_CPUS, rooms) is not None
    assert pack({0: 210, 1: 72}, GROUPS_OF_32_CPUS, rooms, thorough=False) is None


def test_who_needs_few_cpus_for_a_gpu_goes_where_there_are_few():
    resources = {0: Resources(cpus=4, gpus=4), 1: Resources(cpus=1, gpus=0.1)}
    rooms = [*machines(25, cpus=32, gpus=8), *machines(21, cpus=182, gpus=4, first=25)]

    packing = pack({0: 63, 1: 320}, resources, rooms)

    assert packing is not None
    assert {worker.node for worker in packing.new if worker.group == 1} <= set(range(25, 46))


def test_every_machine_has_its_part_where_cpus_and_gpus_run_out_together():
    resources = {0: Resources(cpus=1, gpus=0.4), 1: Resources(cpus=1, gpus=0.1), 2: Resources(cpus=1, gpus=1)}
    rooms = machines(62, cpus=64, gpus=8)

    packing = pack({0: 370, 1: 3150, 2: 30}, resources, rooms)

    assert packing is not None
    on_each = Counter(worker.node for worker in packing.new if worker.group == 1)
    assert max(on_each.values()) - min(on_each.values()) < 20
