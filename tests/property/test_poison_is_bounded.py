"""Documents that kill their workers cost a bounded number of attempts, and all others get through (I14, I15)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.engine import events as e
from gristmill.engine.commands import Care
from gristmill.testing.virtual_run import Deed, VirtualRun, group


def killers(poison):
    """Rows by item: a worker dies at the first poison row of a task that it has not been told to leave out."""

    def script(_group, assignment):
        told = {crumb.first_row for crumb, _ in assignment.condemned}
        left = sorted(poison.get(assignment.item_id, set()) - told)
        if not left:
            return Deed()
        row = left[0]
        step = assignment.care is Care.STEP
        return Deed(sizes=(), failure="dies", crumb=e.Crumb(0, row, row + 1) if step else e.Crumb(0, 0, 100))

    return script


def attempts_of(run):
    """How often a task was begun. What was sent to a worker but not begun when it died is no attempt."""
    return sum(isinstance(event, e.TaskFinished | e.TaskRaised | e.WorkerLost) for event in run.events)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    tasks=st.integers(1, 8),
    poison=st.dictionaries(st.integers(0, 7), st.sets(st.integers(0, 15), min_size=1, max_size=5), max_size=4),
)
def test_k_killers_cost_two_attempts_each_and_two_for_each_task_they_are_in(tasks, poison):
    rows = {f"p{task}": found for task, found in poison.items() if task < tasks}
    run = VirtualRun((group(0),), [10] * tasks, killers(rows))
    run.join()
    run.run()

    k = sum(map(len, rows.values()))
    assert attempts_of(run) <= tasks + 2 * len(rows) + 2 * k
    assert attempts_of(run) <= tasks + 4 * k  # I14 from two documents a task up: 2 log2 b + 2 is at least 4
    assert len(run.commits) == tasks
    assert run.quarantined == {}


def test_a_task_that_always_kills_without_a_trace_is_condemned():
    run = VirtualRun((group(0),), [10, 10], lambda _, a: Deed(failure="dies" if a.item_id == "p0" else ""))
    run.join()
    run.run()

    assert run.quarantined == {"p0": 0}
    assert attempts_of(run) == 1 + 6  # twice as usual, three times step by step, and once to write it down


def test_a_task_that_always_raises_is_condemned_after_one_careful_attempt():
    run = VirtualRun((group(0),), [10], lambda _, __: Deed(failure="raises"))
    run.join()
    run.run()

    assert run.quarantined == {"p0": 0}
    assert attempts_of(run) == 3


def test_a_transient_error_is_forgiven_ten_times_with_longer_and_longer_pauses():
    run = VirtualRun((group(0),), [10], lambda _, a: Deed(failure="transient" if a.attempt < 10 else ""))
    run.join()
    run.run()
    run.check_books()

    assert attempts_of(run) == 11
    assert 0.5 * (1 + 2 + 4 + 8 + 16 + 32 + 64) + 3 * 60 < run.now < 270
