"""A document that takes too long is given up, nested limits keep their order, and everybody's timer is put back."""

import itertools
import signal
import threading
import time

import pytest

from gristmill.errors import TimeLimitExceeded
from gristmill.stages.time_limit import can_limit, time_limit

SOON_S = 0.02
LATER_S = 60.0


def spin():
    for _ in itertools.count():
        pass


def test_what_is_quick_enough_returns_its_result():
    assert time_limit(LATER_S, divmod, 7, 2) == (3, 1)


def test_what_takes_too_long_is_stopped_and_says_so():
    with pytest.raises(TimeLimitExceeded, match=r"^time_limit: expected to finish within 0\.02 s; it was stopped$"):
        time_limit(SOON_S, spin)


def test_an_exception_of_the_function_passes():
    with pytest.raises(ZeroDivisionError):
        time_limit(LATER_S, divmod, 1, 0)


def test_a_library_that_catches_every_exception_does_not_catch_this():
    def stubborn():
        for _ in itertools.count():
            try:
                spin()
            except Exception:  # noqa: BLE001
                continue

    with pytest.raises(TimeLimitExceeded):
        time_limit(SOON_S, stubborn)


def test_what_a_bare_except_has_swallowed_is_raised_again():
    swallowed = []

    def deaf():
        try:
            spin()
        except BaseException as error:  # noqa: BLE001
            swallowed.append(type(error).__name__)
        spin()

    with pytest.raises(TimeLimitExceeded):
        time_limit(SOON_S, deaf)
    assert swallowed == ["_Expired"]


@pytest.mark.parametrize(("outer_s", "inner_s"), [(SOON_S, LATER_S), (LATER_S, SOON_S), (SOON_S, SOON_S)])
def test_of_two_nested_limits_the_one_that_is_due_first_comes_first(outer_s, inner_s):
    caught = []

    def inner():
        try:
            time_limit(inner_s, spin)
        except TimeLimitExceeded:
            caught.append("inner")
            raise

    with pytest.raises(TimeLimitExceeded, match=f"{min(outer_s, inner_s):g} s"):
        time_limit(outer_s, inner)
    assert caught == ([] if outer_s < inner_s else caught)
    assert caught or outer_s <= inner_s


def test_an_outer_limit_still_holds_when_an_inner_one_was_kept():
    def outer():
        assert time_limit(LATER_S, divmod, 7, 2) == (3, 1)
        spin()

    with pytest.raises(TimeLimitExceeded):
        time_limit(SOON_S, outer)


def test_an_outer_limit_still_holds_when_an_inner_one_was_exceeded():
    def outer():
        with pytest.raises(TimeLimitExceeded):
            time_limit(SOON_S, spin)
        spin()

    with pytest.raises(TimeLimitExceeded, match=r"within 0\.2 s"):
        time_limit(0.2, outer)


@pytest.fixture
def somebody_elses_timer():
    """A handler and a timer that were there before, and what the handler was called with."""
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    left, again = signal.setitimer(signal.ITIMER_REAL, LATER_S)  # of pytest-timeout
    yield rung
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, left, again)


@pytest.mark.parametrize("function", [int, spin])
def test_somebody_elses_timer_and_handler_are_put_back(somebody_elses_timer, function):
    handler = signal.getsignal(signal.SIGALRM)
    try:
        time_limit(SOON_S, function)
    except TimeLimitExceeded:
        assert function is spin

    left, again = signal.getitimer(signal.ITIMER_REAL)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert LATER_S - 20 < left <= LATER_S
    assert again == 0
    assert somebody_elses_timer == []


def test_a_timer_of_somebody_else_that_is_due_meanwhile_rings_and_the_limit_goes_on(somebody_elses_timer):
    signal.setitimer(signal.ITIMER_REAL, SOON_S)
    with pytest.raises(TimeLimitExceeded):
        time_limit(5 * SOON_S, spin)

    assert somebody_elses_timer == [signal.SIGALRM]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_nothing_is_left_running_where_nothing_was():
    before = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        time_limit(LATER_S, int)
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)


def test_in_another_thread_nothing_is_limited_and_no_signal_is_touched():
    handler, said = signal.getsignal(signal.SIGALRM), []

    def elsewhere():
        said.append(can_limit())
        said.append(time_limit(1e-9, divmod, 7, 2))
        said.append(signal.getsignal(signal.SIGALRM) is handler)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert said == [False, (3, 1), True]


def test_a_limit_that_ends_with_its_function_leaves_no_signal_behind():
    """The moment between the end of the function and the end of the limit, many times over."""
    outcomes = set()
    for k in range(300):
        due = time.monotonic() + 1e-4

        def until_due(due=due):
            while time.monotonic() < due:
                pass

        try:
            time_limit(1e-4 + k * 1e-7, until_due)
            outcomes.add("kept")
        except TimeLimitExceeded:
            outcomes.add("exceeded")
    assert outcomes <= {"kept", "exceeded"}
