"""Workers are started where they fit, take turns where they do not, and are replaced before they go."""

import itertools

import pytest
from tests.property.scripts import Fanning

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine import invariants
from gristmill.engine.caretaker import own_limit
from gristmill.engine.fleet import Fleet
from gristmill.engine.policies.rates import Prior
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.engine.state import WorkerState
from gristmill.errors import EngineBug
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def started(run):
    return [(x.group, x.node, x.gpus) for x in run.commands if isinstance(x, c.StartWorker)]


def test_one_group_takes_all_cpus_at_once():
    run = VirtualRun((group(0),), [1] * 50)
    run.join(cpus=4)

    assert started(run) == [(0, 0, ())] * 4


def test_no_more_workers_are_started_than_there_are_tasks():
    run = VirtualRun((group(0),), [1, 1])
    run.join(cpus=8)

    assert started(run) == [(0, 0, ())] * 2


def test_workers_spread_over_nodes_by_free_cpus():
    run = VirtualRun((group(0),), [1] * 50)
    run.join(cpus=1)
    run.join(cpus=2)

    assert started(run) == [(0, 0, ()), (0, 1, ()), (0, 1, ())]


def test_every_gpu_gets_its_worker_at_once():
    run = VirtualRun((group(0, resources=Resources(gpus=1)),), [1] * 50)
    run.join(gpu_memory_gb=(8.0,) * 4)

    assert started(run) == [(0, 0, (gpu,)) for gpu in range(4)]


def test_a_node_that_joins_twice_is_one_node():
    run = VirtualRun((group(0, resources=Resources(gpus=1)),), [1] * 50)
    run.join(gpu_memory_gb=(8.0,))
    run.repeat(run.nodes[0])

    assert started(run) == [(0, 0, (0,))]


def test_a_group_with_work_and_no_worker_gets_the_gpu_before_the_one_that_gave_it_up():
    run = VirtualRun((group(0, resources=Resources(gpus=1)), group(1, resources=Resources(gpus=1))), [1] * 40)
    run.join(gpu_memory_gb=(8.0,))
    run.run()

    turns = [index for index, _, _ in started(run)]
    assert all(now != then for now, then in itertools.pairwise(turns))


def test_an_old_worker_goes_when_its_replacement_is_ready():
    s = Scheduler((group(0, num_workers=1),), SchedulerConfig(num_sources=9, worker_max_lifetime_s=10.0))
    s.handle(e.NodeJoined(0, 2, (), 0))
    s.handle(e.WorkerReady(0))
    assert s.handle(e.Ticked(10.5)) == [c.StartWorker(1, 0, 0, ())]
    assert s.handle(e.Ticked(11.0)) == []
    assert s.handle(e.WorkerReady(1)) == [c.DrainWorker(0)]
    invariants.check(s)


def test_an_old_worker_on_the_only_gpu_goes_first():
    only = group(0, resources=Resources(gpus=1))
    s = Scheduler((only,), SchedulerConfig(num_sources=9, worker_max_lifetime_s=10.0))
    s.handle(e.NodeJoined(0, 2, (8.0,), 0))
    s.handle(e.WorkerReady(0))
    assert s.handle(e.Ticked(10.5)) == [c.DrainWorker(0)]
    assert s.handle(e.WorkerExited(0)) == [c.StartWorker(1, 0, 0, (0,))]
    invariants.check(s)


def test_recycled_workers_lose_nothing():
    config = SchedulerConfig(num_sources=60, worker_max_lifetime_s=0.2)
    run = VirtualRun((group(0), group(1)), [1] * 60, lambda *_: Deed(service_s=0.05), config=config)
    run.join()
    run.run()
    run.check_books()

    assert len(started(run)) > 10


@pytest.mark.parametrize("lifetime_s", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(300, 308))
def test_who_is_replaced_does_not_take_the_room_somebody_waits_for(lifetime_s, seed):
    run = run_with_a_group_that_waits(lifetime_s, seed)
    while run.finish is None and run.now < 300:
        run.next_step()

    assert run.finish is not None
    run.check_books()


def run_with_a_group_that_waits(lifetime_s, seed):
    """Three groups of less than a GPU, and one that needs all of one of the two: it comes when others have gone."""
    shapes = Resources(gpu_memory_gb=3), Resources(gpus=0.5), Resources(gpu_memory_gb=3), Resources(gpus=1)
    groups = tuple(group(index, resources=shape) for index, shape in enumerate(shapes))
    sizes = [55, 53, 12, 27, 50, 12, 44, 48, 7, 56, 60, 12]
    config = SchedulerConfig(len(sizes), worker_max_lifetime_s=lifetime_s)
    run = VirtualRun(groups, sizes, Fanning(seed), config=config)
    run.join(gpu_memory_gb=(8.0, 5.5), memory_bytes=50)
    return run


@pytest.mark.slow
def test_a_run_in_circles_is_reported(monkeypatch):
    """With the rule above taken away, workers come and go and no task is finished."""
    monkeypatch.setattr(Fleet, "is_waited_for", lambda _: False)
    run = run_with_a_group_that_waits(0.3, 304)

    with pytest.raises(EngineBug, match=r"^virtual run: expected progress; got none for 2\d{3}"):
        run.run()


def two_groups_on_one_gpu():
    """A worker of the first group is at work and will soon be old; the second group has no room for one."""
    groups = tuple(group(index, resources=Resources(gpus=1)) for index in range(2))
    s = Scheduler(groups, SchedulerConfig(num_sources=2, worker_max_lifetime_s=10.0))
    s.handle(e.NodeJoined(0, 2, (8.0,), 10**6))
    items = tuple(e.SourceItem(index, f"p{index}", 1, index) for index in range(2))
    s.handle(e.SourceListed(items), e.SourceExhausted(), e.WorkerReady(0))
    return s


def drained(commands):
    return [command.worker for command in commands if isinstance(command, c.DrainWorker)]


def test_an_old_worker_goes_while_another_group_has_no_worker_and_nothing_to_do():
    assert drained(two_groups_on_one_gpu().handle(e.Ticked(10.5))) == [0]


def test_an_old_worker_stays_while_another_group_waits_for_room_and_goes_afterwards():
    s = two_groups_on_one_gpu()
    first = next(iter(s.fleet.find(0).assigned))
    s.handle(e.Ticked(1.0), e.TaskEmitted(0, first, e.Output(0, "p0.0", 1, 7)))
    assert drained(s.handle(e.Ticked(10.5))) == []

    s.handle(e.NodeJoined(1, 2, (8.0,), 10**6))  # room for the other, and nobody had to go
    assert drained(s.handle(e.Ticked(11.0))) == [0]


def test_the_workers_follow_the_measured_rates():
    service_s = [2.0, 1.0, 10.0]
    groups = (
        group(0, resources=Resources(cpus=0, gpu_memory_gb=1)),
        group(1),
        group(2, resources=Resources(cpus=0, gpu_memory_gb=10)),
    )
    config = SchedulerConfig(num_sources=200, rescale_interval_s=5.0)
    run = VirtualRun(groups, [1] * 200, lambda index, _: Deed(service_s=service_s[index]), config=config)
    run.join(cpus=16, gpu_memory_gb=(102.0,))
    run.run()

    assert run.now < 1.2 * 200  # ten workers of the slowest group take 200 s; one would take 2,000
    assert sum(index == 2 for index, _, _ in started(run)) == 10


def test_two_groups_share_the_cpus_in_proportion_to_their_load():
    run = VirtualRun((group(0), group(1)), [1] * 400, lambda index, _: Deed(service_s=(0.3, 0.1)[index]))
    run.join(cpus=8)
    run.run()

    assert run.now < 1.25 * 400 * (0.3 + 0.1) / 8


def test_workers_move_aside_for_a_group_that_needs_a_whole_gpu():
    groups = (
        group(0, resources=Resources(gpus=0.5)),
        group(1, resources=Resources(gpu_memory_gb=3)),
        group(2, resources=Resources(gpus=1)),
    )
    run = VirtualRun(groups, [1] * 40)
    run.join(cpus=2, gpu_memory_gb=(8.0, 5.5))
    run.run()

    assert run.finish.outcome == "finished"
    assert len(started(run)) < 30


def test_workers_are_drained_while_there_is_work_if_another_group_needs_their_cpus():
    run = VirtualRun((group(0), group(1)), [1] * 400, lambda index, _: Deed(service_s=(0.3, 0.1)[index]))
    run.join(cpus=8)
    run.run()

    downstream = {x.worker for x in run.commands if isinstance(x, c.StartWorker) and x.group == 1}
    sends = [i for i, x in enumerate(run.commands) if isinstance(x, c.SendTask) and x.worker in downstream]
    drains = [i for i, x in enumerate(run.commands) if isinstance(x, c.DrainWorker) and x.worker in downstream]
    assert drains[0] < sends[-1]


def test_with_priors_the_first_workers_are_shared_out_as_the_rates_ask():
    config = SchedulerConfig(num_sources=90, priors=(Prior(4.0), Prior(1.0, setup_s=30.0)))
    run = VirtualRun((group(0), group(1)), [1] * 90, config=config)
    run.join(cpus=10)

    assert [index for index, _, _ in started(run)].count(1) == 8
    assert run.scheduler.groups[1].setup_s == 30.0


def test_a_prior_of_one_group_does_not_decide_for_the_others():
    run = VirtualRun((group(0), group(1)), [1] * 90, config=SchedulerConfig(num_sources=90, priors=(Prior(1.0), None)))
    run.join(cpus=10)

    assert [index for index, _, _ in started(run)].count(1) == 5


def grown(num_workers, *, rss_bytes, most=100, **config):
    """So many workers at work, all of which have grown to this size."""
    config = SchedulerConfig(num_sources=99, worker_memory_bytes=most, **config)
    s = Scheduler((group(0, num_workers=num_workers),), config)
    s.handle(e.NodeJoined(0, num_workers, (), 10**9))
    s.handle(*[e.WorkerReady(n) for n in range(num_workers)])
    s.handle(e.SourceListed(tuple(e.SourceItem(n, f"p{n}", 1, n) for n in range(99))))
    return s, s.handle(e.Ticked(1.0), *[e.MemorySampled(n, rss_bytes) for n in range(num_workers)])


def starts_and_drains(commands):
    return [x for x in commands if isinstance(x, c.StartWorker | c.DrainWorker)]


def test_workers_that_have_grown_are_replaced_one_after_another_each_by_one_that_is_ready():
    s, commands = grown(3, rss_bytes=200, worker_restart_interval_s=60.0)
    assert starts_and_drains(commands) == [c.StartWorker(3, 0, 0, ())]
    assert starts_and_drains(s.handle(e.Ticked(2.0))) == []
    assert starts_and_drains(s.handle(e.Ticked(3.0), e.WorkerReady(3))) == [c.DrainWorker(0)]
    assert starts_and_drains(s.handle(e.Ticked(4.0))) == []

    assert starts_and_drains(s.handle(e.Ticked(5.0), e.WorkerExited(0))) == [c.StartWorker(4, 0, 0, ())]
    invariants.check(s)


def test_ready_workers_never_fall_below_what_there_were_while_they_are_replaced():
    s, _ = grown(4, rss_bytes=200)
    ready = []
    for step in range(40):
        starting = [w.id for w in s.groups[0].workers.values() if w.state is WorkerState.STARTING]
        leaving = [w.id for w in s.groups[0].workers.values() if w.state is WorkerState.DRAINING]
        s.handle(e.Ticked(2.0 + step), *map(e.WorkerReady, starting), *map(e.WorkerExited, leaving))
        ready.append(s.groups[0].crew.num_ready)

    assert min(ready) == 4
    assert all(worker.id > 3 for worker in s.groups[0].workers.values())


def finish_what_is_sent(s, now):
    """All that is running is done by `now`; starting workers are ready, leaving ones gone."""
    workers = [*s.groups[0].workers.values()]
    done = [e.TaskFinished(w.id, next(iter(w.assigned)), (), 0.5, ()) for w in workers if w.assigned]
    ready = [e.WorkerReady(w.id) for w in workers if w.state is WorkerState.STARTING]
    gone = [e.WorkerExited(w.id) for w in workers if w.state is WorkerState.DRAINING and not w.assigned]
    return s.handle(e.Ticked(now), *done, *ready, *gone)


def test_a_worker_that_has_done_as_many_tasks_as_it_may_is_replaced_by_one_that_is_ready():
    s, _ = grown(1, rss_bytes=0, worker_max_tasks=3)
    for now in (2.0, 3.0):
        assert starts_and_drains(finish_what_is_sent(s, now)) == []

    assert starts_and_drains(finish_what_is_sent(s, 4.0)) == [c.StartWorker(1, 0, 0, ())]
    assert starts_and_drains(finish_what_is_sent(s, 5.0)) == [c.DrainWorker(0)]
    invariants.check(s)


def test_workers_that_have_done_as_much_are_replaced_one_after_another_until_all_is_done():
    s, _ = grown(3, rss_bytes=0, worker_max_tasks=5)
    s.handle(e.SourceExhausted())
    ready, most = [], 0
    for step in range(60):
        finish_what_is_sent(s, 2.0 + step)
        most = max(most, *(w.tasks_done for w in s.groups[0].workers.values()), 0)
        if s.groups[0].live > 12:
            ready.append(s.groups[0].crew.num_ready)

    assert min(ready) == 3
    assert most <= 5 + 3 * 3  # who waits for its turn goes on working: two steps for each of those before it
    assert not s.tasks


def test_of_workers_that_have_grown_alike_only_some_are_replaced_at_first():
    s, commands = grown(4, rss_bytes=90)
    limits = [own_limit(n, 100) for n in range(4)]

    assert [x.worker for x in starts_and_drains(commands)] == [4]
    assert [w.replaces for w in s.groups[0].workers.values() if w.replaces is not None] == [
        next(n for n in range(4) if limits[n] < 90)
    ]
