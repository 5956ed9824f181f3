"""The window of requests and the policy of retries, in virtual time: hours of traffic in milliseconds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.models.client.retry import (
    IN_A_ROW,
    MAX_BACKOFF_S,
    MAX_RETRY_AFTER_S,
    Failure,
    Load,
    Pace,
    RetryPolicy,
    Window,
    retry_after_s,
)
from gristmill.models.client.usage import Budget

TOO_MUCH = Failure("429", 429)
outcomes = st.sampled_from(["ok", "429", "500", "timeout", "gone"])


def failure(kind):
    return Failure(kind, int(kind) if kind.isdigit() else None)


@given(
    size=st.integers(1, 40),
    steps=st.lists(st.tuples(outcomes, st.floats(0, 0.999), st.integers(0, 39), st.floats(0.001, 5)), max_size=200),
)
def test_the_window_never_lets_out_more_than_its_limit_nor_before_a_pause_is_over(size, steps):
    window, now, out = Window(size, RetryPolicy(3, 1.0)), 0.0, []
    paused_until = 0.0
    for outcome, chance, which, seconds in steps:
        while (wait_s := window.wait_s(now)) == 0.0:
            out.append(window.begin(now))
            assert now >= paused_until
            assert len(out) == window.in_flight <= window.limit <= size
        assert wait_s is None or wait_s > 0
        now += seconds
        if not out:
            continue
        ticket = out.pop(which % len(out))
        if outcome == "ok":
            window.succeeded(ticket)
        elif outcome == "gone":
            window.abandoned(ticket)
        else:
            told = Failure("429", 429, retry_after_s=seconds) if outcome == "429" else failure(outcome)
            window.failed(ticket, told, now, chance)
            if outcome == "429":
                paused_until = max(paused_until, now + seconds)
        assert 1 <= window.limit <= size
        assert not window.is_shut


def test_a_429_halves_the_window_once_for_all_that_left_together():
    window = Window(64)
    window.is_proven = True
    tickets = [window.begin(0.0) for _ in range(64)]
    for ticket in tickets:
        window.failed(ticket, TOO_MUCH, 1.0, 0.5)

    assert window.limit == 32
    window.failed(window.begin(100.0), TOO_MUCH, 101.0, 0.5)
    assert window.limit == 16


def test_a_window_of_answers_widens_it_by_one():
    window = Window(64)
    window.is_proven = True
    window.limit = 10
    for _ in range(9):
        window.succeeded(window.begin(0.0))
    assert window.limit == 10
    window.succeeded(window.begin(0.0))
    assert window.limit == 11


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_more_than_ten_requests_leave_before_one_is_answered(status):
    window, sent, out = Window(1000), 0, []
    while not window.is_shut:
        while window.wait_s(0.0) == 0.0:
            out.append(window.begin(0.0))
            sent += 1
        window.failed(out.pop(), Failure(str(status), status), 0.0, 0.5)

    assert sent == IN_A_ROW


def test_an_answer_in_between_makes_refusals_begin_anew():
    window = Window(100)
    for _ in range(5):
        for _ in range(IN_A_ROW - 1):
            window.failed(window.begin(0.0), Failure("401", 401), 0.0, 0.5)
        window.succeeded(window.begin(0.0))
    assert not window.is_shut


def test_a_server_that_goes_away_and_comes_back_is_waited_for():
    window, now = Window(50, RetryPolicy(3, 1.0)), 0.0
    window.succeeded(window.begin(now))
    gone = Failure("refused", nothing_sent=True)
    for _ in range(IN_A_ROW - 1):  # each time all that are under way are refused at once: one refusal, not fifty
        now += window.wait_s(now)
        for ticket in [window.begin(now) for _ in range(50)]:
            window.failed(ticket, gone, now, 0.9)
    assert not window.is_shut
    assert now > 60
    window.succeeded(window.begin(now))
    assert window.refused == 0


@given(
    attempt=st.integers(0, 50),
    chance=st.floats(0, 1, exclude_max=True),
    wanted=st.none() | st.floats(0, MAX_RETRY_AFTER_S),
    base=st.floats(0, 10),
)
def test_a_wait_is_at_least_what_the_server_wants_and_at_most_the_backoff(attempt, chance, wanted, base):
    policy = RetryPolicy(max_retries=100, base_delay=base)
    wait_s = policy.wait_s(Failure("429", 429, wanted), attempt, chance)

    assert wait_s >= (wanted or 0)
    assert wait_s <= max(wanted or 0, min(MAX_BACKOFF_S, base * 2.0**attempt))


@pytest.mark.parametrize(
    ("status", "is_retried"),
    [(s, True) for s in (408, 409, 429, 500, 502, 503, 504, 529)]
    + [(s, False) for s in (400, 401, 403, 404, 413, 422)],
)
def test_which_statuses_are_tried_again(status, is_retried):
    assert (RetryPolicy(3, 1.0).wait_s(Failure(str(status), status), 0, 0.5) is not None) is is_retried


@pytest.mark.parametrize("kind", ["connection", "timeout", "cut", "not_json", "no_choice", "null_content"])
def test_what_is_not_a_status_is_tried_again_as_often_as_allowed(kind):
    policy = RetryPolicy(2, 1.0)
    waits = [policy.wait_s(Failure(kind), attempt, 0.5) for attempt in range(4)]

    assert [wait is not None for wait in waits] == [True, True, False, False]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"Retry-After": "86400"}, MAX_RETRY_AFTER_S),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers, seconds):
    assert retry_after_s(headers, 10.0) == seconds


@settings(deadline=None)
@given(per_minute=st.integers(1, 600), late=st.lists(st.floats(0, 3), min_size=1, max_size=50))
def test_no_minute_has_more_requests_than_allowed(per_minute, late):
    pace, now, sent = Pace(per_minute), 0.0, []
    for number in range(3 * per_minute):
        now += pace.wait_s(now) + (late[number % len(late)] if number % 7 == 0 else 0.0)
        sent.append(now)
        pace.take(1, now)
    first = 0
    for last, at in enumerate(sent):
        while at - sent[first] >= 60.0 - 1e-6:
            first += 1
        assert last - first + 1 <= per_minute


def test_tokens_that_were_reserved_and_not_used_are_given_back():
    window = Window(10, tokens=Pace(61_000))
    window.is_proven = True
    ticket = window.begin(0.0, Load(61_000))
    assert window.wait_s(0.0) == pytest.approx(60.0)
    window.succeeded(ticket, Load(1_000))
    assert window.wait_s(0.0) == pytest.approx(0.0)


@given(
    limit=st.floats(0.1, 20),
    requests=st.lists(st.tuples(st.floats(0.01, 3), st.floats(0, 1), st.booleans()), max_size=100),
)
def test_money_is_never_spent_beyond_the_limit(limit, requests):
    window = Window(5, budget=Budget(limit))
    window.is_proven = True
    out = []
    for most, share, ends in requests:
        load = Load(0, most)
        if window.wait_s(0.0, load) == 0.0:
            out.append(window.begin(0.0, load))
        if ends and out:
            ticket = out.pop()
            window.succeeded(ticket, Load(0, ticket.load.cost * share))
        assert window.budget.spent + window.budget.reserved <= limit + 1e-9
    while out:
        window.abandoned(out.pop())
    assert window.is_spent(Load(0, limit + 1))
    assert window.budget.reserved == pytest.approx(0.0)
