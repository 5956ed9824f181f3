"""Memory is taken towards the sink: who may start another task, and when a task may exceed the limit."""

from gristmill.engine.policies.backpressure import FIRST_GUESS, FORGET, MemoryBook


def book(limit=1000, num_groups=3):
    return MemoryBook(limit=limit, num_groups=num_groups)


def test_a_task_needs_a_guess_until_something_is_measured():
    memory = book()
    assert memory.need(0, 10) == 10 * FIRST_GUESS

    memory.observe(0, 10, peak_bytes=20)
    assert memory.need(0, 10) == 20


def test_the_estimate_is_a_maximum_that_fades():
    memory = book()
    memory.observe(1, 10, peak_bytes=100)
    memory.observe(1, 10, peak_bytes=10)

    assert memory.expansion == [None, 10 * FORGET, None]


def test_a_task_runs_alone_however_large_it_is():
    assert book(limit=0).admits(0, 10**9)


def test_a_second_task_is_admitted_only_within_the_limit():
    memory = book()
    memory.send(1, 0, 100)  # 500 reserved

    assert memory.admits(0, 100)
    assert not memory.admits(0, 101)


def test_what_waits_counts():
    memory = book()
    memory.queue(2, 300)
    memory.send(1, 0, 100)

    assert memory.admits(0, 40)
    assert not memory.admits(0, 41)


def test_room_is_kept_for_the_largest_task_of_every_later_group():
    memory = book()
    memory.queue(1, 200)
    memory.consume(1, 200)  # gone, but as large a one may come again
    memory.send(1, 0, 100)

    assert memory.admits(0, 60)
    assert not memory.admits(0, 61)
    assert memory.admits(2, 100)


def test_a_task_is_not_alone_while_something_waits_further_on():
    memory = book()
    memory.queue(1, 900)

    assert not memory.admits(0, 100)
    assert memory.admits(1, 900)


def test_an_empty_task_needs_only_that_the_others_fit():
    memory = book()
    memory.send(1, 0, 500)
    assert memory.admits(0, 0)

    memory.queue(1, 1001)
    assert not memory.admits(0, 0)


def test_a_task_that_came_back_gives_its_reservation_back_once():
    memory = book()
    memory.send(1, 0, 0)
    memory.send(2, 0, 10)
    assert (memory.reserved, memory.reserved_total) == ({1: 1, 2: 50}, 51)

    memory.unsend(2)
    memory.unsend(2)
    assert (memory.reserved, memory.reserved_total) == ({1: 1}, 1)
