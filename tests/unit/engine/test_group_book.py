"""What happened to the tasks and workers of a group is counted by stage, for whoever watches."""

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine.events import Crumb
from gristmill.engine.policies.retry import loss_kind
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def virtual(script=None, **further):
    run = VirtualRun((group(0), group(1)), [1] * 6, script, **further)
    run.join()
    return run


def test_every_task_is_in_the_latencies_of_its_stage():
    run = virtual(lambda number, _: Deed(service_s=(0.002, 0.5)[number]))
    run.run()
    first, second = (group.book.latencies[0] for group in run.scheduler.groups)

    assert first.counts[1] == sum(first.counts) == 6
    assert second.counts[5] == sum(second.counts) == 6
    assert second.sum_s == pytest.approx(3.0)


def test_a_task_that_failed_is_a_retry_and_a_worker_that_died_a_loss():
    run = virtual()
    while not run.running():
        run.next_step()
    run.lose(run.running()[0], "killed by SIGSEGV", Crumb(0, 0, 1))
    while not run.running():
        run.next_step()
    run.fail_task(run.running()[0])
    run.run()
    book = run.scheduler.groups[0].book

    assert book.losses == {(0, "signal"): 1}
    assert book.retries == {0: 2}
    assert run.scheduler.groups[1].book.losses == {}


def test_progress_is_when_a_task_came_further_or_the_first_one_came():
    run = virtual(lambda _, __: Deed(service_s=1.0), setup_s=5.0)
    assert [g.progress_at for g in run.scheduler.groups] == [None, None]
    while not run.scheduler.groups[0].live:
        run.next_step()
    first = run.scheduler.groups[0].progress_at
    assert first is not None
    assert run.scheduler.groups[1].progress_at is None
    run.run()
    assert run.scheduler.groups[1].progress_at > first + 6.0


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("killed by the system because memory ran out", "memory"),
        ("killed because memory ran out", "memory"),
        ("killed by SIGKILL, as the system does when memory runs out", "signal"),
        ("no result within the deadline of 3 s", "timeout"),
        ("ended with exit code 3", "exit"),
        ("The actor died unexpectedly", "unknown"),
    ],
)
def test_what_ended_a_worker_is_told_from_the_words_for_it(cause, kind):
    assert loss_kind(cause) == kind


def test_seconds_of_a_resource_add_up_to_all_there_was_of_it():
    spec = {"nodes": {"cpus": 4, "gpus": 2}, "items": 40, "stages": [{"name": "a", "service_s": 2, "gpus": 1}]}
    simulation = Simulation(SimulationSpec.parse(spec))
    result = simulation.run()
    scheduler = simulation.scheduler
    seconds = scheduler.account.resource_seconds(scheduler.groups, scheduler.now)

    assert sum(seconds["cpu"].values()) == pytest.approx(4 * result.makespan_s)
    assert sum(seconds["gpu"].values()) == pytest.approx(2 * result.makespan_s)
    assert seconds["gpu"]["useful"] == pytest.approx(80)


def test_a_run_without_gpus_has_no_seconds_of_them():
    simulation = Simulation(SimulationSpec.parse({"nodes": {"cpus": 1}, "items": 3, "stages": [{"name": "a"}]}))
    simulation.run()

    assert set(
        simulation.scheduler.account.resource_seconds(simulation.scheduler.groups, simulation.scheduler.now)
    ) == {"cpu"}
