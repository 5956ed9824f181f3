"""Every second of every resource is entered once, under the heading it belongs to."""

import pytest

from gristmill.backends.simulated.simulation import Simulation
from gristmill.backends.simulated.spec import SimulationSpec
from gristmill.engine.account import SHARES, Account
from gristmill.engine.policies.packing import UNITS
from gristmill.engine.policies.rates import GroupBook
from gristmill.engine.state import GroupRecord, NodeRecord, TaskRecord, WorkerRecord
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import group


def run(**document):
    return Simulation(SimulationSpec.parse({"nodes": {"cpus": 4}, **document})).run()


DOCUMENTS = [
    {"items": 50, "stages": [{"name": "a", "setup_s": 3}, {"name": "b", "service_s": 2}]},
    {"items": 80, "stages": [{"name": "a", "sigma": 1.0}], "faults": {"kill_worker_every_s": 5}},
    {"items": 40, "documents": 4, "stages": [{"name": "a"}], "faults": {"poison_share": 0.05}},
    {"items": 30, "nodes": {"cpus": 3, "gpus": 3}, "stages": [{"name": "a", "gpus": 2, "setup_s": 1}]},
    {"items": 30, "stages": [{"name": "a", "dispatch_s": 0.5, "fan_out": 2}, {"name": "b", "batch_size": 4}]},
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_shares_add_up_to_one(document):
    result = run(**document)

    assert tuple(result.shares) == SHARES
    assert sum(result.shares.values()) == pytest.approx(1.0)
    assert min(result.shares.values()) >= 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_scheduler_and_the_world_agree(document):
    result = run(**document)

    # As ratios: where CPUs were oversubscribed for a moment, a share is of what workers held, not of what there was.
    per_useful = {name: share / result.shares["useful"] for name, share in result.shares.items()}
    assert per_useful["setup"] == pytest.approx(result.setup_s / result.useful_s)
    assert per_useful["wasted"] == pytest.approx(result.wasted_s / result.useful_s)


def test_useful_time_is_the_work_that_was_done():
    result = run(items=100, stages=[{"name": "a", "service_s": 2}])

    assert result.shares["useful"] == pytest.approx(100 * 2 / (4 * result.makespan_s))


def test_a_worker_without_tasks_is_starved():
    shares = run(
        items=40, stages=[{"name": "a", "num_workers": 1}, {"name": "b", "service_s": 0.5, "num_workers": 3}]
    ).shares

    assert shares["starved"] > 0.5
    assert shares["blocked"] < 0.02


def test_a_worker_that_may_not_go_on_is_blocked():
    stages = [
        {"name": "a", "service_s": 0.1, "item_bytes": "100MB", "num_workers": 2},
        {"name": "b", "service_s": 2, "num_workers": 1},
    ]
    shares = run(items=40, source_bytes="100MB", nodes={"cpus": 4, "memory": "500MB"}, stages=stages).shares

    assert shares["blocked"] > 0.3


def test_what_is_left_over_while_tasks_wait_is_fragmented():
    shares = run(items=30, nodes={"cpus": 3, "gpus": 3}, stages=[{"name": "a", "gpus": 2}]).shares

    assert shares["fragmented"] == pytest.approx(1 / 3, abs=0.04)


def test_a_message_on_its_way_is_the_schedulers():
    shares = run(items=100, stages=[{"name": "a", "service_s": 0.9, "dispatch_s": 0.1}]).shares

    assert shares["scheduler"] == pytest.approx(0.1, abs=0.01)


def test_what_a_streaming_task_waited_is_blocked_time():
    book = GroupBook(busy_s=10.0)
    book.finished(useful_s=6.0, held_s=3.0, outputs=20, output_bytes=200)

    assert book.split()["useful"] == 6.0
    assert book.split()["blocked"] == 3.0
    assert book.split()["scheduler"] == pytest.approx(1.0)


def test_the_spread_of_service_times_is_remembered():
    book = GroupBook()
    for seconds in (1.0, 1.0, 1.0, 5.0):
        book.finished(seconds, 0.0, 1, 0)

    # Mean 2, mean square 7: sigma^2 = ln(7 / 4).
    assert book.sigma() == pytest.approx(0.748, abs=0.001)


def test_a_worker_on_its_way_out_is_neither_starved_nor_blocked():
    crew_of = GroupRecord(group(0))
    worker = WorkerRecord(0, 0, 0, ())
    crew_of.crew.add(worker)
    crew_of.crew.make_ready(worker)
    crew_of.crew.drain(worker)
    account = Account([])
    account.pass_time(3.0, [crew_of])

    assert crew_of.book.split()["setup"] == 3.0
    assert crew_of.book.starved_s == crew_of.book.blocked_s == 0.0


def account_of(*groups, seconds=3.0):
    """What an interval on a machine of four CPUs and two GPUs comes to."""
    account = Account([])
    account.nodes_changed([NodeRecord(0, 4.0, (80.0, 80.0), 0)], 0.0)
    account.pass_time(seconds, groups)
    return account


def waiting(resources):
    record = GroupRecord.starting_from(group(0, resources=resources), None)
    record.queue.append(TaskRecord(0, 0, 0, "a", 1, None, 0.0))
    return record


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [(Resources(cpus=8), (True, False)), (Resources(cpus=0, gpus=3), (False, True)), (None, (False, False))],
)
def test_what_nobody_holds_is_fragmented_only_if_a_task_waits_that_wants_it(resources, wanted):
    account = account_of(*([waiting(resources)] if resources else []))
    free = (3.0 * 4 * UNITS, 3.0 * 2 * UNITS)

    assert account.free_fragmented == [all_of_it * is_wanted for all_of_it, is_wanted in zip(free, wanted, strict=True)]
    assert [a + b for a, b in zip(account.free_fragmented, account.free_starved, strict=True)] == list(free)


def test_a_worker_that_starts_is_in_set_up_and_one_without_a_task_is_starved():
    record = GroupRecord.starting_from(group(0), None)
    for number in range(3):
        record.crew.add(WorkerRecord(number, 0, 0, ()))
    record.crew.make_ready(record.crew.workers[0])
    account_of(record)

    assert (record.book.setup_s, record.book.starved_s, record.book.ending_s) == (6.0, 3.0, 0.0)


def test_no_item_is_done_before_a_worker_of_the_first_group_is_there():
    record = GroupRecord.starting_from(group(0), None)
    record.book.ready(2.0)
    record.book.finished(useful_s=1.0, held_s=0.0, outputs=0, output_bytes=0)
    account = account_of(record)
    account.longest_path_s = 5.0

    assert account.efficiency([record], 10.0).bound_s == 7.0


def test_what_runs_is_useful_so_far_and_time_counts_from_the_first_machine():
    record = GroupRecord.starting_from(group(0), None)
    worker = WorkerRecord(0, 0, 0, ())
    record.crew.add(worker)
    record.crew.make_ready(worker)
    worker.give([TaskRecord(0, 0, 0, "a", 1, None, 0.0)])
    worker.begin(1, 4.0)
    record.crew.refile(worker)
    account = Account([])
    assert account.efficiency([record], 7.0).makespan_s == 0.0

    account.nodes_changed([NodeRecord(0, 1.0, (), 0)], 2.0)
    account.pass_time(5.0, [record])
    found = account.efficiency([record], 7.0)
    assert found.makespan_s == 5.0
    assert found.shares["useful"] == pytest.approx(3.0 / 5.0)
    assert found.shares["scheduler"] == pytest.approx(2.0 / 5.0)
