"""The book of a group adds up what its workers did, and says what one task of it was like."""

import pytest

from gristmill.engine.policies.rates import GroupBook


def book_of(*tasks, **entries):
    """A book with one finished task for every (useful_s, held_s, outputs, output_bytes)."""
    book = GroupBook(**entries)
    for task in tasks:
        book.finished(*task)
    return book


def test_tasks_their_outputs_and_their_bytes_add_up():
    book = book_of((1.0, 0.0, 3, 30), (2.0, 0.5, 1, 5))

    assert (book.tasks, book.useful_s, book.blocked_busy_s, book.outputs, book.output_bytes) == (2, 3.0, 0.5, 4, 35)


def test_the_shortest_set_up_is_kept_and_all_are_counted():
    book = GroupBook()
    for setup_s in (4.0, 3.0, 5.0):
        book.ready(setup_s)

    assert (book.least_setup_s, book.starts) == (3.0, 3)


def test_what_is_neither_work_nor_waste_nor_waiting_is_the_schedulers():
    book = book_of((3.0, 1.0, 1, 0), busy_s=20.0, wasted_s=2.0, setup_s=5.0, ending_s=0.5, starved_s=7.0, blocked_s=4.0)

    assert book.split(running_s=6.0) == {
        "useful": 3.0 + 6.0,
        "setup": 5.5,
        "starved": 7.0,
        "blocked": 4.0 + 1.0,
        "wasted": 2.0,
        "scheduler": 20.0 - 3.0 - 6.0 - 2.0 - 1.0,
    }


def test_utilisation_is_the_useful_share_and_nothing_before_there_is_any():
    assert book_of((3.0, 0.0, 1, 0), busy_s=3.0, starved_s=9.0).utilisation() == 0.25
    assert GroupBook().utilisation() == 0.0


@pytest.mark.parametrize(
    ("seconds", "sigma"), [((), 0.0), ((5.0,), 0.0), ((0.0, 0.0), 0.0), ((2.0, 2.0), 0.0), ((0.0, 2.0), 0.8326)]
)
def test_the_spread_of_a_few_tasks(seconds, sigma):
    assert book_of(*((each, 0.0, 1, 0) for each in seconds)).sigma() == pytest.approx(sigma, abs=1e-4)
