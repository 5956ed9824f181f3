"""One world for scripts and for chance: both carry out the same commands, and both object to the same nonsense."""

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.errors import EngineBug, RunFailed
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def scripted():
    """Tasks of a second each, in a script."""
    run = VirtualRun((group(0, num_workers=1),), [1] * 4, lambda *_: Deed(service_s=1.0))
    run.join(cpus=1)
    return run


def drawn():
    """The same in a simulation."""
    simulation = Simulation(SimulationSpec.parse({"items": 4, "stages": [{"name": "a", "num_workers": 1}]}))
    simulation.begin()
    return simulation


@pytest.fixture(params=[scripted, drawn], ids=["script", "chance"])
def world(request):
    """A world in which a task runs."""
    world = request.param()
    while not any(worker.running for worker in world.workers.values()):
        world.step()
    return world


def obey(world, *commands):
    """Let a scheduler that has lost its mind give these commands."""
    world.scheduler.handle = lambda *_events: list(commands)
    world.feed()


def a_task(world):
    return world.workers[0].under_way()[0]


NONSENSE = {
    "a worker that lives": lambda world: c.DrainWorker(7),
    "worker 1 to be started": lambda world: c.StartWorker(3, 0, 0, ()),
    "calls of 1 to 1 tasks": lambda world: c.SendTask(0, [[a_task(world)] * 2]),
    "a payload that is not released": lambda world: c.Release(None),
    "Publish once, after Committed": lambda world: c.Publish(0),
}


@pytest.mark.parametrize("words", NONSENSE)
def test_a_command_that_makes_no_sense_is_refused(world, words):
    with pytest.raises(EngineBug, match=words):
        obey(world, NONSENSE[words](world))


def test_a_payload_is_released_once(world):
    payload = a_task(world).payload

    with pytest.raises(EngineBug, match="a payload that is not released"):
        obey(world, c.Release(payload), c.Release(payload))


def test_a_partition_is_committed_once(world):
    commit = c.Commit(0, "p0", (), (), (), (), ())

    with pytest.raises(EngineBug, match="root 0 to be committed once"):
        obey(world, commit, commit)


def test_a_worker_that_drains_is_given_nothing(world):
    with pytest.raises(EngineBug, match="tasks for ready workers only"):
        obey(world, c.DrainWorker(0), c.SendTask(0, [[a_task(world)]]))


def test_data_of_a_machine_that_is_gone_is_not_sent(world):
    task = a_task(world)
    made = world.data.make("lost", 1, root=0, node=5)
    world.lose_machine(5)

    with pytest.raises(EngineBug, match="data that is there"):
        obey(world, c.SendTask(0, [[c.Assignment(9, "lost", made, task.care, 0, (), "", 0)]]))


def test_nothing_is_ordered_after_the_end(world):
    with pytest.raises(EngineBug, match="nothing after Finish"):
        obey(world, c.Finish("finished"), c.PullSource(1))


def test_a_task_whose_input_is_lost_while_it_waits_says_so(world):
    waiting = world.data.make("late", 1, root=0, node=5)
    world.scheduler.handle = lambda *_events: []
    task = a_task(world)
    world._send(c.SendTask(0, [[c.Assignment(9, "late", waiting, task.care, 0, (), "", 0)]]))
    world.lose_machine(5)
    told = []
    world.scheduler.handle = lambda *events: told.extend(events) or []
    while not any(isinstance(event, e.TaskRaised) for event in told):
        world.step()

    assert [event.task for event in told if isinstance(event, e.TaskFinished)] == [task.task]
    assert [event.task for event in told if isinstance(event, e.TaskRaised)] == [9]


def test_a_worker_that_drains_while_it_starts_is_ready_before_it_leaves():
    run = VirtualRun((group(0),), [1])
    run.join(cpus=1)
    (worker,) = run.workers
    told, answers = [], [[c.DrainWorker(worker)]]
    run.scheduler.handle = lambda *events: told.extend(events) or (answers.pop() if answers else [])
    run.feed()
    while worker in run.workers:
        run.step()

    assert [type(event) for event in told if isinstance(event, e.WorkerReady | e.WorkerExited)] == [
        e.WorkerReady,
        e.WorkerExited,
    ]


def test_an_item_that_takes_hours_is_not_a_standstill():
    spec = {"items": 2, "stages": [{"name": "a", "service_s": 10_000}]}

    assert Simulation(SimulationSpec.parse(spec)).run().makespan_s == pytest.approx(20_000)


def test_a_stage_that_stands_still_for_ever_is_told():
    stopped = {"stage": "a", "from_s": 5, "factor": float("inf")}
    spec = {"items": 20, "stages": [{"name": "a"}], "slowdowns": [stopped]}

    with pytest.raises(RunFailed, match="nothing has happened"):
        Simulation(SimulationSpec.parse(spec)).run()
