"""Memory is taken towards the sink: who may start another task, where, and when a task may exceed the limit."""

import pytest

from gristmill.engine.dispatch import FIRST_GUESS, FORGET, MAX_GUESS, UNKNOWN_BYTES, MemoryBook

EXPANSION = 5.0  # what every group of `book` has shown


def book(*limits, num_groups=3):
    memory = MemoryBook(num_groups)
    for node, limit in enumerate(limits or (1000,)):
        memory.add_node(node, limit)
    memory.expansion = [EXPANSION] * num_groups
    memory.made = [0.0] * num_groups
    return memory


def admits(memory, group, num_bytes, *, at=0, source=0):
    return memory.admits(group, num_bytes, at=at, source=source)


def send(memory, task, group, num_bytes, *, at=0, source=0):
    memory.send(task, group, num_bytes, at=at, source=source)


@pytest.mark.parametrize(
    ("num_bytes", "need"),
    [
        (0, UNKNOWN_BYTES),
        (1000, 1000 * MAX_GUESS),
        (1 << 30, (1 << 30) * FIRST_GUESS + UNKNOWN_BYTES),
    ],
)
def test_a_task_needs_a_careful_guess_until_something_is_measured(num_bytes, need):
    assert MemoryBook(1).need(0, num_bytes) == need


def test_a_task_needs_its_input_times_what_others_have_expanded_by():
    memory = MemoryBook(1)
    memory.observe(0, 10, peak_bytes=20)

    assert memory.need(0, 1000) == 2000
    assert memory.need(0, 0) == UNKNOWN_BYTES


def test_a_task_without_a_size_needs_what_others_without_one_have_made():
    memory = MemoryBook(1)
    memory.observe(0, 0, peak_bytes=700)

    assert memory.need(0, 0) == 700
    assert memory.need(0, 10) == 10 * MAX_GUESS


def test_the_estimates_are_maxima_that_fade():
    memory = MemoryBook(2)
    for size in (10, 0):
        memory.observe(1, size, peak_bytes=100)
        memory.observe(1, size, peak_bytes=10)

    assert (memory.expansion, memory.made) == ([None, 10 * FORGET], [None, 100 * FORGET])


def test_a_task_runs_alone_however_large_it_is():
    assert admits(book(0), 0, 10**9)


def test_a_task_runs_alone_on_its_machine_whatever_the_others_do():
    memory = book(1000, 1000)
    send(memory, 1, 0, 100, at=0)

    assert admits(memory, 0, 10**9, at=1)
    assert not admits(memory, 0, 10**9, at=0)


def test_a_second_task_is_admitted_only_within_the_limit():
    memory = book()
    send(memory, 1, 0, 100)  # 500 reserved

    assert admits(memory, 0, 100)
    assert not admits(memory, 0, 101)


def test_what_waits_counts():
    memory = book()
    memory.queue(2, 300, at=0)
    memory.expansion[2] = 0.0
    send(memory, 1, 0, 100)

    assert admits(memory, 0, 40)
    assert not admits(memory, 0, 41)


def test_room_is_kept_for_the_largest_task_of_every_later_group_with_what_it_makes():
    memory = book()
    memory.queue(1, 50, at=0)
    memory.consume(1, 50, at=0)  # gone, but as large a one may come again: 50 in and 250 out
    send(memory, 1, 0, 100)

    assert admits(memory, 0, 40)
    assert not admits(memory, 0, 41)
    assert admits(memory, 2, 100)


def test_what_a_later_group_has_already_is_not_kept_twice():
    memory = book()
    memory.queue(1, 50, at=0)
    send(memory, 1, 1, 50)  # its lane is in use: 50 held, 250 reserved

    assert admits(memory, 0, 140)
    assert not admits(memory, 0, 141)


def test_a_task_is_not_alone_while_something_waits_further_on():
    memory = book()
    memory.queue(1, 900, at=0)

    assert not admits(memory, 0, 100)
    assert admits(memory, 1, 900)


def test_a_task_of_unknown_size_waits_until_what_it_makes_has_room():
    memory = book()
    memory.made[0] = 400.0
    send(memory, 1, 0, 0)
    assert admits(memory, 0, 0)

    memory.queue(1, 201, at=0)
    assert not admits(memory, 0, 0)


def test_every_machine_has_its_own_limit():
    memory = book(1000, 300)
    send(memory, 1, 0, 10, at=0)
    send(memory, 2, 0, 10, at=1)

    assert admits(memory, 0, 100, at=0)
    assert not admits(memory, 0, 100, at=1)


def test_input_from_another_machine_needs_room_as_well():
    memory = book(1000, 1000)
    send(memory, 1, 0, 10, at=1)  # 50 reserved

    assert admits(memory, 1, 190, at=1, source=1)
    assert not admits(memory, 1, 190, at=1, source=0)


def test_what_waits_for_workers_elsewhere_does_not_stop_everything():
    memory = book(100, 100)
    memory.queue(2, 100, at=0)  # fills the machine
    assert not admits(memory, 1, 50, at=0)

    memory.consume(2, 100, at=0)
    memory.queue(1, 100, at=0)
    assert admits(memory, 1, 100, at=1, source=0)


def test_a_machine_that_is_lost_takes_its_bytes_along_and_one_that_repeats_itself_keeps_them():
    memory = book(1000, 1000)
    memory.queue(1, 100, at=1)
    send(memory, 7, 0, 10, at=1)
    memory.add_node(1, 5)
    assert (memory.limit, memory.held_total) == (2000, 100)

    memory.remove_node(1)
    memory.unsend(7)
    assert (memory.limit, memory.held_total, memory.reserved) == (1000, 0, {})


def test_a_task_that_came_back_gives_its_reservation_back_once():
    memory = book()
    send(memory, 1, 0, 0)
    send(memory, 2, 0, 10)
    assert memory.nodes[0].reserved_total == 1 + 50

    memory.unsend(2)
    memory.unsend(2)
    assert memory.nodes[0].reserved_total == 1
