"""Each invariant notices when it is broken."""

import pytest

from gristmill.engine import invariants
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.engine.state import NO_SHELF, State
from gristmill.errors import EngineBug
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group


@pytest.fixture
def scheduler():
    """Under way: tasks wait, run, and have left outputs in the second group."""
    config = SchedulerConfig(num_sources=20, rescale_interval_s=1e9)
    groups = (group(0, resources=Resources(gpus=0.5)), group(1))
    run = VirtualRun(groups, [10] * 20, lambda *_: Deed(sizes=(7, 7)), config=config)
    run.join(gpu_memory_gb=(8.0,))
    for _ in range(12):
        run.next_step()
    invariants.check(run.scheduler)
    return run.scheduler


def break_gpu(s):
    s.fleet.nodes[0].gpu_free[0] += 1


def break_cpus(s):
    s.fleet.nodes[0].cpus_used += 1


def break_held(s):
    s.memory.nodes[0].held[1] += 1


def break_reserved(s):
    s.memory.reserved.popitem()


def break_reserved_total(s):
    s.memory.nodes[0].reserved_total += 1


def break_limit(s):
    s.memory.nodes[0].limit += 1


def break_live(s):
    s.groups[1].live += 1


def break_root(s):
    next(iter(s.roots.values())).live += 1


def break_state(s):
    s.groups[0].queue[0].state = State.ASSIGNED


def forget_a_root(s):
    del s.roots[s.groups[0].queue[0].root]


def put_a_task_in_two_places(s):
    s.groups[0].queue.append(s.groups[0].queue[0])


def lose_a_task(s):
    task = s.groups[0].queue.pop()
    s.groups[0].live -= 1
    s.roots[task.root].live -= 1


def forget_a_worker(s):
    s.fleet._workers.popitem()


def leave_a_worker_idle(s):
    worker = next(w for w in s.groups[0].workers.values() if w.assigned)
    while worker.assigned:
        _, task = worker.assigned.popitem()
        task.state = State.QUEUED
        s.memory.unsend(task.id)
        s.groups[0].queue.append(task)
    worker.running.clear()
    worker.behind.clear()
    s.groups[0].crew.refile(worker)


def forget_a_call(s):
    next(w for w in s.groups[0].workers.values() if w.running).running.clear()


def miscount_a_worker(s):
    s.groups[0].crew.num_busy += 1


def misfile_a_worker(s):
    worker = next(w for w in s.groups[0].workers.values() if w.shelf != NO_SHELF)
    del s.groups[0].crew._shelves[worker.shelf][worker.id]


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (break_gpu, "I1 free units of GPU 0"),
        (break_cpus, "I1 CPUs in use"),
        (forget_a_worker, "I1 worker"),
        (break_held, "I2 bytes held"),
        (break_reserved, "I2 tasks with a reservation"),
        (break_reserved_total, "I2 bytes in all"),
        (break_limit, "I2 limits"),
        (break_live, "I3 live tasks of group 1"),
        (break_root, "I3 live tasks by root"),
        (break_state, "I3 waiting tasks"),
        (put_a_task_in_two_places, "I3 task"),
        (forget_a_root, "I4 root"),
        (leave_a_worker_idle, "I6 group stage_0"),
        (forget_a_call, "I21 tasks in calls of worker"),
        (miscount_a_worker, "I6 ready, staying, busy and stalled workers of group 0"),
        (misfile_a_worker, "I6 tasks of the workers of group 0"),
        (lose_a_task, "I19 all tasks"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_damage_is_noticed(scheduler, damage, name):
    damage(scheduler)

    with pytest.raises(EngineBug, match=f"^{name}"):
        invariants.check(scheduler)
