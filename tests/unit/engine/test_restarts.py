"""What was on a machine that is lost is made again from its source partition, and is committed once."""

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.breaker import QuarantineLimit
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import Deed, VirtualRun, group

SOURCES = 8
WIDE, NARROW = Resources(cpus=1.5), Resources(cpus=0.5)  # a machine of two CPUs has room for one of each


def until(run, is_so):
    """Go on until something is so, and say where."""
    while not is_so(run):
        assert run.finish is None, "the run is over before it was so"
        run.next_step()
    return run


def two_machines(run):
    run.nodes = {node: e.NodeJoined(node, 2, (), 1 << 40) for node in range(2)}
    run.feed(*run.nodes.values())


def started(script=None, *, sources=SOURCES, config=None, last_s=1.0):
    """Two groups, the second slow, on two machines of two CPUs; stopped when data waits on both."""

    def plain(index, _):
        return Deed(sizes=(4, 4), service_s=last_s if index else 0.01)

    groups = (group(0, resources=WIDE, num_workers=2), group(1, resources=NARROW))
    run = VirtualRun(groups, [1] * sources, script or plain, config=config)
    two_machines(run)
    return until(run, lambda r: {t.node for t in r.scheduler.tasks.values() if t.group} == {0, 1})


def roots_with_data_on(run, node):
    return {task.root for task in run.scheduler.tasks.values() if task.node == node}


def sent_to(run):
    return [(a.item_id, a.attempt) for x in run.commands if isinstance(x, c.SendTask) for k in x.calls for a in k]


def test_every_partition_with_data_on_a_lost_machine_is_listed_again_and_no_other():
    run = started()
    lost = roots_with_data_on(run, 1)

    run.lose_node(1)
    run.run()

    run.check_books()
    assert {x.root for x in run.commands if isinstance(x, c.ListAgain)} == lost != set()
    assert sorted(run.published) == list(range(SOURCES))


def test_files_of_the_second_time_have_other_names():
    run = started()
    lost = roots_with_data_on(run, 1)
    run.lose_node(1)
    run.run()

    attempts = sent_to(run)
    again = [attempt for item, attempt in attempts if attempt and int(item.split(".")[0][1:]) in lost]
    assert len(set(attempts)) == len(attempts)
    assert again


def test_documents_are_counted_once_and_lost_work_is_called_wasted():
    calm, struck = started(), started()
    struck.lose_node(1)
    calm.run()
    struck.run()

    def documents(run):
        return [(counts.documents_in, counts.documents_out, counts.written) for counts in run.scheduler.totals]

    assert documents(struck) == documents(calm)
    assert sum(group.book.wasted_s for group in struck.scheduler.groups) > 0
    useful = [[group.book.useful_s for group in run.scheduler.groups] for run in (calm, struck)]
    assert useful[1] == pytest.approx(useful[0])


def test_a_task_that_streams_for_nothing_is_not_held_up():
    """What came of its first outputs was on the other machine. Nobody takes up what it still makes."""

    def script(index, _):
        return Deed(sizes=(4,) * 6, streamed=6, service_s=6.0) if index == 0 else Deed(service_s=2.0 * index)

    groups = (group(0, resources=WIDE), group(1, resources=WIDE), group(2, resources=NARROW))
    run = VirtualRun(groups, [1], script)
    two_machines(run)
    until(run, lambda r: any(task.group == 2 for task in r.scheduler.tasks.values()))
    (streaming,) = [worker for worker in run.workers.values() if worker.group == 0]
    (far,) = {task.node for task in run.scheduler.tasks.values() if task.group == 2}
    assert far != streaming.node
    assert streaming.todo

    run.lose_node(far)
    run.join(cpus=2)
    until(run, lambda r: any(isinstance(x, c.ListAgain) for x in r.commands))
    at_the_end = run.now
    run.run()

    run.check_books()
    assert at_the_end < 10
    assert run.published == [0]


def test_what_runs_elsewhere_of_a_lost_partition_ends_and_is_let_go():
    run = started(last_s=5.0)
    lost = roots_with_data_on(run, 1)
    elsewhere = [
        task.item_id
        for worker in run.workers.values()
        if worker.node == 0 and worker.todo
        for task in run.scheduler.tasks.values()
        if task.id == worker.todo[0].task and task.root in lost
    ]

    run.lose_node(1)
    run.run()

    run.check_books()
    committed = [output.item_id for commit in run.commits.values() for output in commit.outputs]
    assert len(committed) == len(set(committed))
    assert all(sum(item == sent for sent, _ in sent_to(run)) >= 2 for item in elsewhere)


def test_a_run_that_is_to_stop_does_not_begin_a_lost_partition_again():
    def script(index, assignment):
        fails = index == 0 and assignment.item_id == "p5"
        return Deed(sizes=(4, 4), service_s=50.0 if index else 0.01, failure="dies" if fails else "")

    run = started(script, config=SchedulerConfig(num_sources=SOURCES, limit=QuarantineLimit(0)))
    until(run, lambda r: r.scheduler.stop_reason is not None)
    unfinished = set(run.scheduler.roots)
    for node in list(run.scheduler.fleet.nodes):
        run.lose_node(node)
    run.join(cpus=2)
    run.run()

    assert run.finish.outcome == "quarantine_limit"
    assert unfinished
    assert not [x for x in run.commands if isinstance(x, c.ListAgain)]
    assert not run.scheduler.roots


def test_a_partition_whose_final_tasks_are_lost_is_done_again_and_committed_once():
    run = started()
    until(run, lambda r: r.scheduler.committing)
    (root,) = run.scheduler.committing
    counted = [counts.documents_in for counts in run.scheduler.totals]
    answer = run.lose_outputs(root)

    assert c.ListAgain(root, run.scheduler.roots[root].first_attempt) in answer
    assert sum(counts.documents_in for counts in run.scheduler.totals) < sum(counted)
    assert run.feed(e.OutputsLost(root)) == []
    run.run()
    run.check_books()
    assert sorted(run.published) == list(range(SOURCES))
