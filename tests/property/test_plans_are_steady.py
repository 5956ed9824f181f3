"""Workers change only when that pays, only what is known is acted on, and nobody goes who has just come.

Invariants I9 to I12 and I16.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine import commands as c
from gristmill.engine.fleet import Demand, pays, throughput
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group

HOUR_S = 3600.0


class WatchedRun(VirtualRun):
    """A run whose changes of workers are looked at in every step."""

    def __init__(self, service_s, setup_s, sources, cpus, *, gpus=0, long=None):
        shape = Resources(gpus=1) if gpus else Resources()
        groups = tuple(group(index, resources=shape) for index in range(len(service_s)))
        self.service_s = service_s
        self.long = long or {}  # item -> seconds
        super().__init__(groups, [1] * sources, self.deed, setup_s=setup_s)
        self.moved_unmeasured = []
        self.left_early = []
        self.busy_before_idle = []
        for share in cpus:
            self.join(cpus=share, gpu_memory_gb=(8.0,) * gpus)

    def deed(self, index, assignment):
        return Deed(service_s=self.long.get(assignment.item_id, self.service_s[index]))

    def feed(self, *events):
        groups = self.scheduler.groups
        before = [group.crew.num_staying for group in groups]
        idle = {w.id: w for group in groups for w in group.workers.values() if not w.assigned and w.ready_at}
        commands = super().feed(*events)
        drained = {x.worker for x in commands if isinstance(x, c.DrainWorker)}
        for index, group_ in enumerate(groups):
            if self.scheduler.source_exhausted:
                continue  # groups end one after another, and what they had goes to the rest
            if before[index] and not group_.rate.is_known and group_.crew.num_staying != before[index]:
                self.moved_unmeasured.append((self.now, index))
            gone = [group_.workers[number] for number in drained if number in group_.workers]
            self.left_early += [w.id for w in gone if self.now - w.ready_at < 2 * group_.setup_s]
            spared = [w for w in idle.values() if w.group == index and w.id not in drained and w.id in group_.workers]
            paid_off = [w for w in spared if self.now - w.ready_at >= 2 * group_.setup_s]
            self.busy_before_idle += [(w.id, len(paid_off)) for w in gone if w.assigned and paid_off]
        return commands


services = st.lists(st.sampled_from((0.02, 0.05, 0.1, 0.3)), min_size=2, max_size=3)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    service_s=services,
    setup_s=st.sampled_from((0.0, 0.05, 0.5)),
    sources=st.integers(20, 120),
    cpus=st.lists(st.integers(2, 5), min_size=1, max_size=2),
)
def test_unmeasured_groups_keep_their_number_and_new_workers_stay(service_s, setup_s, sources, cpus):
    run = WatchedRun(service_s, setup_s, sources, cpus)
    run.run()
    run.check_books()

    assert run.moved_unmeasured == []
    assert run.left_early == []


@pytest.mark.parametrize("gpus", [0, 8], ids=["places that are alike", "a GPU for each"])
@pytest.mark.parametrize("long", range(4))
def test_who_is_idle_is_the_first_to_go(gpus, long):
    run = WatchedRun((0.01, 0.5), 0.01, 200, (8,), gpus=gpus, long={f"p{long}": 5.0})
    run.run()

    drained = [command.worker for command in run.commands if isinstance(command, c.DrainWorker)]
    assert drained
    assert run.busy_before_idle == []


def test_a_change_that_takes_longer_than_what_is_left_is_not_made():
    run = WatchedRun((0.3, 0.1), 60.0, 100, (8,))
    run.run()

    starts = [command for command in run.commands if isinstance(command, c.StartWorker)]
    assert len(starts) == 8


demands = st.lists(st.tuples(st.floats(1, 1e4), st.floats(0.01, 100)), min_size=1, max_size=4)
counts = st.lists(st.integers(1, 20), min_size=4, max_size=4)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(work=demands, now=counts, then=counts, change_s=st.floats(0, 1000))
def test_a_change_that_is_made_gets_more_done_by_the_end_second_for_second(work, now, then, change_s):
    groups = [Demand(i, Resources(), remaining, rate) for i, (remaining, rate) in enumerate(work)]
    before, after = dict(enumerate(now[: len(work)])), dict(enumerate(then[: len(work)]))
    if not pays(groups, before, after, change_s):
        return
    between = {index: min(before[index], after[index]) for index in before}
    horizon_s = min(600.0, 1 / throughput(groups, after))
    seconds = [(step + 0.5) * horizon_s / 1000 for step in range(1000)]
    done = math.fsum(throughput(groups, between if at < change_s else after) for at in seconds)

    assert done > 1.02 * len(seconds) * throughput(groups, before)


def test_steady_rates_make_at_most_two_plans_an_hour():
    stages = [
        {"name": "read", "service_s": 5.0, "sigma": 0.2, "setup_s": 5},
        {"name": "judge", "service_s": 20.0, "sigma": 0.2, "setup_s": 30},
    ]
    document = {"items": 4500, "seed": 3, "nodes": {"cpus": 20}, "stages": stages}
    result = Simulation(SimulationSpec.parse(document)).run()
    settled = [second for second, _ in result.starts if 600 < second <= 600 + HOUR_S]

    assert result.makespan_s > 1.25 * HOUR_S
    assert len(set(settled)) <= 2


@pytest.mark.parametrize("resources", [Resources(), Resources(gpus=1)], ids=["cpu", "gpu"])
def test_recycling_with_room_to_spare_never_takes_a_ready_worker_away(resources):
    config = SchedulerConfig(num_sources=300, worker_max_lifetime_s=0.3)
    ready = []

    class Recycled(VirtualRun):
        def feed(self, *events):
            commands = super().feed(*events)
            if not self.scheduler.source_exhausted or self.scheduler.groups[0].queue:
                ready.append(self.scheduler.groups[0].crew.num_ready)
            return commands

    shape = group(0, resources=resources, num_workers=3)
    run = Recycled((shape,), [1] * 300, lambda *_: Deed(service_s=0.05), config=config, setup_s=0.1)
    run.join(cpus=4, gpu_memory_gb=(8.0,) * 4)
    run.run()

    first = ready.index(3)
    assert min(ready[first:]) == 3
    assert sum(isinstance(command, c.StartWorker) for command in run.commands) > 8
