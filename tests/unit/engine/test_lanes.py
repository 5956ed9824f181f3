"""Calls that overlap: a worker with lanes has several calls under way, and each is watched and blamed by itself."""

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine import commands as c
from gristmill.engine import dispatch as batching
from gristmill.engine import events as e
from gristmill.engine.caretaker import CANCEL_S
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def begun(lanes=3, sources=8, **options):
    """One worker that has been given its first calls."""
    run = VirtualRun((group(0, lanes=lanes, num_workers=1, **options),), [1] * sources)
    run.join(cpus=1)
    while not run.running():
        run.next_step()
    return run


def worker_of(run):
    (worker,) = run.scheduler.groups[0].workers.values()
    return worker


def names(calls):
    return [call.tasks[0].item_id for call in calls]


def test_a_worker_gets_as_many_calls_as_it_has_lanes_before_anything_is_measured():
    run = begun(lanes=3)

    assert names(worker_of(run).running.values()) == ["p0", "p1", "p2"]


def test_calls_end_in_any_order_and_the_next_in_line_takes_the_free_lane():
    run = begun(lanes=3)
    run.now += 0.5
    run.act(0, lane=1)

    assert names(worker_of(run).running.values()) == ["p0", "p2", "p3"]
    assert [call.since for call in worker_of(run).running.values()][-1] == run.now
    run.run()
    run.check_books()


def test_of_a_worker_that_dies_everything_under_way_is_suspected_and_nothing_behind_it():
    run = begun(lanes=2, sources=40)
    run.act(0)  # measured: from now on one waits behind
    worker = worker_of(run)
    under_way, waiting = names(worker.running.values()), names(worker.behind)
    assert len(under_way) == 2
    assert waiting
    run.lose(0)

    trials = {task.item_id: task.trial for task in run.scheduler.tasks.values()}
    assert {name: trials[name].deaths for name in (*under_way, *waiting)} == dict.fromkeys(
        under_way, 1
    ) | dict.fromkeys(waiting, 0)
    run.run()
    run.check_books()


def test_what_was_under_way_at_two_deaths_is_stepped_through_alone():
    run = begun(lanes=4, sources=4)
    run.lose(0)
    while not run.running():
        run.next_step()
    run.lose(1)
    sent = []
    while run.finish is None:
        run.next_step()
        sent += [
            (name, a.care, len(worker.todo))
            for name, worker in run.workers.items()
            for a in worker.todo
            if worker.ready
        ]
    run.check_books()

    stepped = [held for _, care, held in sent if care is c.Care.STEP]
    assert stepped
    assert set(stepped) == {1}


def test_one_call_past_the_deadline_is_blamed_and_its_neighbours_are_not():
    late = begun(lanes=2, sources=3, deadline_s=1.0)
    late.now += 0.9
    late.act(0, lane=0)  # p2 begins in its place
    late.now += 0.2
    commands = late.feed()

    assert [type(command) for command in commands if isinstance(command, c.KillWorker)] == [c.KillWorker]
    late.tell_notice(-1)
    trials = {task.item_id: (task.trial.deaths, task.trial.attempts) for task in late.scheduler.tasks.values()}
    assert trials == {"p1": (1, 1), "p2": (0, 1)}


def test_a_worker_that_cancels_overdue_calls_itself_is_given_time_to_do_so():
    run = begun(lanes=2, deadline_s=1.0, cancels=True)
    run.now += 1.0 + CANCEL_S / 2
    assert not [command for command in run.feed() if isinstance(command, c.KillWorker)]

    run.now += CANCEL_S
    (kill,) = [command for command in run.feed() if isinstance(command, c.KillWorker)]
    assert kill.reason == "no result within the deadline of 1 s"  # which is what the user has set


def test_a_step_further_counts_for_the_call_that_made_it():
    run = begun(lanes=2)
    first, second = worker_of(run).running.values()
    run.now += 0.5
    run.feed(e.TaskStepped(0, first.tasks[0].id))

    assert (first.since, second.since) == (run.now, pytest.approx(run.now - 0.5))
    assert worker_of(run).oldest_since == second.since


@pytest.mark.parametrize("lanes", [1, 4])
def test_slots_are_what_runs_and_what_bridges_the_round_trip(lanes):
    assert batching.slots(None, batch_size=2, lanes=lanes) == 2 * lanes
    assert batching.slots(10.0, batch_size=2, lanes=lanes) == 2 * (lanes + 1)
    assert batching.slots(10.0, batch_size=1, lanes=lanes, share=1) == lanes


def simulated(**stage):
    spec = {
        "items": 200,
        "nodes": {"cpus": 1},
        "stages": [{"name": "ask", "service_s": 1.0, "num_workers": 1, **stage}],
    }
    return Simulation(SimulationSpec.parse(spec)).run()


def test_ten_lanes_take_a_tenth_of_the_time_and_the_bound_knows_it():
    alone, together = simulated(), simulated(lanes=10)

    assert together.makespan_s == pytest.approx(alone.makespan_s / 10, rel=0.05)
    assert together.bound_s <= together.makespan_s + 1e-6
    assert together.bound_s > 0.9 * together.makespan_s


def test_time_is_accounted_for_by_worker_however_many_calls_share_it():
    run = VirtualRun((group(0, lanes=5, num_workers=1),), [1] * 12, lambda *_: Deed(service_s=1.0))
    run.join(cpus=1)
    run.run()
    shares = run.scheduler.account.efficiency(run.scheduler.groups, run.now).shares

    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["useful"] == pytest.approx(12 / 15, abs=0.05)  # three rounds; in the last two lanes of five are used
    assert run.scheduler.groups[0].mean_call_s == pytest.approx(1.0)


def test_a_fast_group_asks_for_no_more_workers_than_its_lanes_can_use():
    run = VirtualRun((group(0, lanes=64),), [1] * 40, lambda *_: Deed(service_s=1.0))
    run.join(cpus=8)
    run.run()

    assert sum(isinstance(command, c.StartWorker) for command in run.commands) == 1


def test_the_smallest_of_what_was_learnt_goes_to_workers_that_start_later():
    run = begun(lanes=1, sources=4)
    for number, value in enumerate((1024.0, 256.0, 512.0)):
        (call,) = worker_of(run).running.values()
        run.over(run.workers[0], run.workers[0].running[0])
        learnt = (("ask/batch", value),) if number != 1 else (("ask/batch", value), ("ask/other", 1.0))
        run.feed(e.TaskFinished(0, call.tasks[0].id, (), 0.01, (), learnt=learnt))
    run.lose(0)
    run.run()

    started = [command for command in run.commands if isinstance(command, c.StartWorker)]
    assert [command.learnt for command in started] == [(), (("ask/batch", 256.0), ("ask/other", 1.0))]


FOR_MEMORY = "killed by the system because memory ran out"


def starts(run):
    return [dict(command.learnt) for command in run.commands if isinstance(command, c.StartWorker)]


def until_busy(run):
    while not run.running():
        run.next_step()


def test_workers_that_start_later_know_of_those_that_were_killed_for_memory():
    run = begun(lanes=1, sources=4)
    run.lose(0, FOR_MEMORY, crumb=e.Crumb(0, 0, 5))
    until_busy(run)
    run.lose(1)  # for another reason
    until_busy(run)
    run.lose(2, FOR_MEMORY)
    run.run()

    key = f"{run.scheduler.groups[0].plan.names[0]}/killed_for_memory"
    assert starts(run) == [{}, {key: 1.0}, {key: 1.0}, {key: 2.0}]


def test_workers_killed_for_memory_together_count_as_one_and_idle_ones_not_at_all():
    run = VirtualRun((group(0, num_workers=3),), [1] * 2)
    run.join(cpus=3)
    while len(run.running()) < 2:
        run.next_step()
    busy = [number for number, worker in run.scheduler.groups[0].workers.items() if worker.running]
    for number in sorted(run.workers):
        run.lose(number, FOR_MEMORY)
    run.run()

    assert len(busy) == 2
    assert set(starts(run)[-1].values()) == {1.0}


@pytest.mark.parametrize(
    ("sizes", "limits", "expected"),
    [
        ([(1, 10), (1, 10), (1, 10)], {"most_items": 2}, (2, True)),
        ([(1, 10), (1, 10), (1, 10)], {"most_bytes": 25}, (2, True)),
        ([(1, 10), (1, 10)], {"most_items": 5}, (2, False)),
        ([(9, 10), (1, 10)], {"most_items": 5}, (1, True)),  # one always goes
        ([(2, 10), (3, 10)], {"most_items": 5}, (2, True)),
        ([(1, 1)] * 9, {"most_items": 100}, (4, True)),  # batch_size
        ([], {"most_items": 5}, (0, False)),
    ],
)
def test_a_call_takes_as_many_tasks_as_its_bounds_allow(sizes, limits, expected):
    given = {"most_items": None, "most_bytes": None} | limits
    assert batching.fitting(sizes, batch_size=4, **given) == expected


@pytest.mark.parametrize("bound", [{"batch_bytes": 100}, {"batch_items": 3}])
@pytest.mark.parametrize("lanes", [1, 3])
def test_calls_are_cut_by_bytes_or_items_and_everything_arrives(bound, lanes):
    sizes = [30, 30, 30, 30, 120, 10, 10, 10, 90, 20] * 4

    def script(index, assignment):
        return Deed(sizes=(sizes[int(assignment.item_id[1:])],)) if index == 0 else Deed()

    run = VirtualRun((group(0), group(1, batch_size=8, lanes=lanes, **bound)), [1] * len(sizes), script)
    run.join(cpus=4)
    run.run()
    run.check_books()
    made = {f"p{n}.0": size for n, size in enumerate(sizes)}
    sent = [command for command in run.commands if isinstance(command, c.SendTask)]
    calls = [[a.item_id for a in call] for x in sent for call in x.calls if call[0].item_id in made]

    assert max(map(len, calls)) > 1
    for call in calls:
        if len(call) > 1:
            total = sum(made[name] for name in call) if "batch_bytes" in bound else len(call)
            assert total <= next(iter(bound.values()))
