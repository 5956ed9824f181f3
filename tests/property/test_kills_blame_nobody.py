"""Workers that are killed at any moment, however often, leave nothing out; what kills them by itself still is (I22)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.commands import Care
from gristmill.testing.virtual_run import Deed, VirtualRun, group

ROWS = 8
CALL_S = 0.01  # for any number of documents: taking a task apart costs nine times as much as doing it
KILL = "killed by SIGKILL, as the system does when memory runs out"


def seconds(assignment):
    return CALL_S * (1 + ROWS - first_row(assignment)) if assignment.care is Care.STEP else CALL_S


def first_row(assignment):
    return 0 if assignment.step_from is None else assignment.step_from.first_row


def crumb_of(assignment, elapsed_s):
    """Where a worker is that has been at a task for so long: at one document after another, then at all of them."""
    row = first_row(assignment) + int(elapsed_s / CALL_S)
    alone = assignment.care is Care.STEP and row < ROWS
    return e.Crumb(0, row, row + 1) if alone else e.Crumb(0, 0, ROWS)


def left_out(run):
    """Tasks and documents that some worker was told not to look at."""
    sent = [a for command in run.commands if isinstance(command, c.SendTask) for call in command.calls for a in call]
    return {(a.item_id, a.care, a.condemned) for a in sent if a.condemned or a.care is Care.CONDEMN}


class Killer:
    """Kills one of the workers every now and then, whatever it is at, for as long as there are kills."""

    def __init__(self, run, seed, kills, every_s):
        self.run, self.kills, self.every_s = run, kills, every_s
        self.chance = random.Random(seed)
        self.wait()

    def wait(self):
        if self.kills:
            self.run.at(self.chance.expovariate(1 / self.every_s), self.strike)

    def strike(self):
        self.kills -= 1
        self.wait()
        if not self.run.workers:
            return None
        worker = self.chance.choice(list(self.run.workers.values()))
        call = worker.running[0] if worker.running else None
        self.run.bury(worker)
        return e.WorkerLost(worker.id, KILL, call and crumb_of(call.tasks[0], self.run.now - call.since))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    tasks=st.integers(1, 40),
    kills=st.integers(1, 90),
    every_s=st.sampled_from((0.005, 0.02, 0.1)),
)
def test_kills_at_random_moments_leave_nothing_out(seed, tasks, kills, every_s):
    """Every 5 ms is more often than a task can be done: little moves until the killer is through."""
    run = VirtualRun((group(0),), [10] * tasks, lambda _, a: Deed(service_s=seconds(a)), setup_s=0.001)
    run.join()
    Killer(run, seed, kills, every_s)
    run.run()

    assert run.finish.outcome == "finished"
    assert left_out(run) == set()
    assert len(run.commits) == tasks
    run.check_books()


@pytest.mark.parametrize("seed", range(5))
def test_a_document_that_kills_its_worker_is_found_among_kills(seed):
    """It is told by never surviving, not by how its workers end: the system's kill for memory looks like any other."""
    fatal, poison = 5, "p3"

    def script(_, assignment):
        told = {crumb.first_row for crumb, _ in assignment.condemned}
        if assignment.item_id != poison or fatal in told:
            return Deed(service_s=seconds(assignment))
        step = assignment.care is Care.STEP
        at = (fatal - first_row(assignment)) * CALL_S if step else 0.0
        crumb = e.Crumb(0, fatal, fatal + 1) if step else e.Crumb(0, 0, ROWS)
        return Deed(sizes=(), failure="dies", crumb=crumb, service_s=at + CALL_S / 2, cause=KILL)

    run = VirtualRun((group(0),), [10] * 30, script)
    run.join()
    Killer(run, seed, kills=20, every_s=0.05)
    run.run()

    assert run.finish.outcome == "finished"
    assert left_out(run) == {(poison, Care.STEP, ((e.Crumb(0, fatal, fatal + 1), f"{KILL} in stage stage_0"),))}
    assert len(run.commits) == 30
