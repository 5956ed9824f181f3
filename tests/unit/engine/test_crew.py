"""A crew knows its least loaded worker and its counts without looking at everybody."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.engine.commands import EMIT_CREDITS
from gristmill.engine.state import Crew, TaskRecord, WorkerRecord, WorkerState


def crew_of(*loads, nodes=()):
    """A crew of ready workers that hold so many tasks each, on these machines if it is not one."""
    crew = Crew()
    for number, load in enumerate(loads):
        worker = WorkerRecord(number, 0, nodes[number] if nodes else 0, ())
        crew.add(worker)
        crew.make_ready(worker)
        give(crew, worker, load)
    return crew


def give(crew, worker, count):
    for _ in range(count):
        number = worker.id * 1000 + len(worker.assigned)
        worker.assigned[number] = TaskRecord(number, 0, 0, "a", 1, None, 0.0)
    crew.refile(worker)


def chosen(crew, *, below=10, avoid=-1):
    return next((worker.id for worker in crew.least_loaded(below=below, avoid=avoid)), None)


def test_the_worker_with_the_fewest_tasks_is_chosen():
    assert chosen(crew_of(2, 1, 3)) == 1


def test_among_equals_the_one_that_has_waited_longest_is_chosen():
    crew = crew_of(0, 0)
    give(crew, crew.workers[0], 1)
    crew.workers[0].assigned.clear()
    crew.refile(crew.workers[0])

    assert chosen(crew) == 1


def test_who_is_filed_again_unchanged_keeps_its_turn():
    crew = crew_of(0, 0)
    crew.refile(crew.workers[0])

    assert chosen(crew) == 0


def test_nobody_is_chosen_when_all_hold_as_many_as_they_may():
    assert chosen(crew_of(2, 2), below=2) is None


def test_the_worker_a_task_failed_on_is_chosen_only_if_there_is_no_other():
    assert chosen(crew_of(0, 1), avoid=0) == 1
    assert chosen(crew_of(0, 2), avoid=0, below=2) == 0


def test_starting_and_draining_workers_are_not_chosen():
    crew = crew_of(0)
    crew.add(WorkerRecord(1, 0, 0, ()))
    crew.drain(crew.workers[0])

    assert chosen(crew) is None
    assert (crew.num_ready, crew.num_staying) == (0, 1)


def test_a_stalled_worker_is_not_chosen_before_its_outputs_are_granted():
    crew = crew_of(1)
    for _ in range(EMIT_CREDITS):
        crew.emitted(crew.workers[0], 0)
    assert (chosen(crew), crew.num_stalled) == (None, 1)

    assert crew.take_waiting(1.0) == [(0, 0)] * EMIT_CREDITS
    assert (chosen(crew), crew.num_stalled) == (0, 0)


def in_turn(crew, **options):
    return [worker.id for worker in crew.least_loaded(below=10, **options)]


def test_among_equals_the_one_near_the_data_is_chosen_and_then_one_of_each_other_machine():
    crew = crew_of(1, 0, 0, 2, nodes=(0, 0, 1, 2))

    assert in_turn(crew) == [1, 2, 3]
    assert in_turn(crew, near=0) == [1, 2, 3]
    assert in_turn(crew, near=1) == [2, 1, 3]


def test_the_worker_a_task_failed_on_comes_last_and_not_after_another_of_its_machine():
    assert in_turn(crew_of(0, 1, nodes=(0, 1)), avoid=0) == [1, 0]
    assert in_turn(crew_of(0, 1, 1, nodes=(0, 1, 0)), avoid=0) == [1, 2]


def test_of_those_that_hold_the_most_the_one_that_has_run_longest_is_found():
    crew = crew_of(1, 3, 3, 2, nodes=(0, 0, 1, 1))
    for number, since in enumerate((0.0, 5.0, 4.0, 0.0)):
        crew.workers[number].running_since = since

    assert crew.most_loaded(above=1).id == 2
    assert crew.most_loaded(above=3) is None


changes = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(("give", "finish", "drain", "remove", "emit"))))


@settings(derandomize=True, deadline=None, max_examples=100)
@given(loads=st.lists(st.integers(0, 3), min_size=5, max_size=5), changes=changes)
def test_the_choice_is_that_of_a_search_through_all_workers(loads, changes):
    crew = crew_of(*loads)
    for number, change in changes:
        worker = crew.workers.get(number)
        if worker is None:
            continue
        if change == "give":
            give(crew, worker, 1)
        elif change == "finish" and worker.assigned:
            task = next(iter(worker.assigned))
            del worker.assigned[task]
            crew.forget_outputs(worker, task)
            crew.refile(worker)
        elif change == "drain":
            crew.drain(worker)
        elif change == "remove":
            worker.assigned.clear()
            crew.remove(worker)
        elif change == "emit" and worker.assigned:
            crew.emitted(worker, next(iter(worker.assigned)))
        ready = [w for w in crew.workers.values() if w.state is WorkerState.READY and not w.is_stalled]
        found = next(crew.least_loaded(below=3), None)
        fewest = min((len(w.assigned) for w in ready if len(w.assigned) < 3), default=None)
        assert (None if found is None else len(found.assigned)) == fewest
