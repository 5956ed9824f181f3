"""A step costs the same however many workers there are: counted in lines of Python, which no busy machine changes."""

import sys

import pytest

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.breaker import QuarantineLimit
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.testing.virtual_run import group

STEPS = 100
BEAT_S = 1e-5


def lines_of(work):
    """How many lines of Python a call runs; a loop on one line counts every round."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class BusyCrew:
    """A scheduler whose workers are all busy; each step one of them finishes a task and gets another."""

    def __init__(self, workers, **config):
        source = 4 * workers + STEPS
        self.scheduler = Scheduler(
            (group(0, num_workers=workers, deadline_s=50.0), group(1, num_workers=workers)),
            SchedulerConfig(num_sources=source, rescale_interval_s=60.0, **config),
        )
        self.now = 0.0
        self.sent = []
        self.tell(e.NodeJoined(0, 2.0 * workers, (), 1 << 40))
        self.tell(*(e.WorkerReady(number) for number in range(2 * workers)))
        self.tell(e.SourceListed(tuple(e.SourceItem(i, f"p{i}", 1, i) for i in range(source))))
        # Once a group is measured its workers may hold more: that burst comes before what is counted.
        self.finish(self.sent.pop(0))
        self.finish(self.sent.pop(next(i for i, (worker, _) in enumerate(self.sent) if worker >= workers)))

    def tell(self, *events):
        self.now += BEAT_S
        commands = self.scheduler.handle(e.Ticked(self.now), *events)
        self.sent += [
            (x.worker, a.task) for x in commands if isinstance(x, c.SendTask) for call in x.calls for a in call
        ]

    def finish(self, pair):
        worker, task = pair
        record = self.scheduler.tasks[task]
        outputs = (e.Output(0, f"{record.item_id}.0", 1, None),)
        self.tell(e.TaskFinished(worker, task, outputs, 0.5, ()))

    def work(self):
        for _ in range(STEPS):
            self.finish(self.sent.pop(0))


@pytest.mark.parametrize("config", [{}, {"worker_max_lifetime_s": 60.0}, {"limit": QuarantineLimit(5)}], ids=str)
def test_a_step_costs_no_more_on_many_workers(config):
    few, many = (lines_of(BusyCrew(workers, **config).work) for workers in (50, 1000))

    assert many < 1.2 * few


def test_planning_on_many_workers_leaves_time_for_other_things():
    crew = BusyCrew(200)
    fleet = crew.scheduler.fleet
    fleet.rescale_now = True

    assert fleet.next_rescale() == pytest.approx(400 * 1e-3, abs=0.01)
    assert crew.scheduler.next_wakeup() == fleet.next_rescale()


def test_planning_on_few_workers_is_done_at_once():
    crew = BusyCrew(20)
    crew.scheduler.fleet.rescale_now = True

    assert crew.scheduler.fleet.next_rescale() <= crew.now


def step_where_memory_is_full(machines):
    """A scheduler whose machines have room for one task each and workers that could hold two, and its next step."""
    s = Scheduler((group(0, num_workers=machines),), SchedulerConfig(num_sources=3 * machines, rescale_interval_s=60.0))
    s.handle(*(e.NodeJoined(node, 1.0, (), 10) for node in range(machines)))
    s.handle(*(e.WorkerReady(number) for number in range(machines)))
    commands = s.handle(e.SourceListed(tuple(e.SourceItem(i, f"p{i}", 100, i) for i in range(3 * machines))))
    sent = [(x.worker, a.task) for x in commands if isinstance(x, c.SendTask) for call in x.calls for a in call]
    assert len(sent) == machines
    s.handle(e.Ticked(1.0), e.TaskFinished(*sent[0], (), 0.5, ()))
    return lambda: s.handle(e.Ticked(1.0 + BEAT_S))


def test_a_step_looks_at_every_machine_once_where_memory_is_full_on_all():
    few, many = (lines_of(step_where_memory_is_full(machines)) for machines in (20, 200))

    assert many < 12 * few
