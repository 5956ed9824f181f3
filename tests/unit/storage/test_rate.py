"""One rate for a server, found out by what it answers: in virtual time against a model, and shared by processes."""

import heapq
import multiprocessing
from collections import deque
from itertools import count, pairwise

import pytest

from gristmill.storage import rate
from gristmill.storage.rate import HostRate, State, seconds_asked


class Server:
    """Refuses everything for a second once more than `allowed(time)` requests came in `window_s`."""

    def __init__(self, allowed, window_s):
        self.allowed, self.window_s = allowed, window_s
        self.recent, self.refusing_until = deque(), 0.0

    def answers(self, now):
        while self.recent and self.recent[0] <= now - self.window_s:
            self.recent.popleft()
        fine = now >= self.refusing_until and len(self.recent) < self.allowed(now - 1.0)
        if fine:
            self.recent.append(now)
        elif now >= self.refusing_until:
            self.refusing_until = now + 1.0
        return fine


def simulate(
    allowed, *, workers=64, processes=1, latency_s=0.05, seconds=60.0, most=float("inf"), window_s=1.0, held_up_s=0.0
):
    """Ask a `Server` as processes do that share a rate: each claims the place of its next request, and no further ones.

    `held_up_s`: for so long in every seven seconds nothing starts. Returns good answers a second and the share that
    was refused.
    """
    state, server = State(used_at=1.0), Server(allowed, window_s)
    good = refused = 0
    order = count()
    free, has_place = [workers // processes] * processes, [False] * processes
    events = []

    def happen(at, kind, process, known=0):
        heapq.heappush(events, (at, next(order), kind, process, known))

    for process in range(processes):
        happen(1.0, "look", process)
    while (event := heapq.heappop(events))[0] < 1.0 + seconds:
        now, _, kind, process, known = event
        if kind == "look" and free[process] and not has_place[process]:
            has_place[process] = True
            start = state.claim(now, most)
            happen(start + max(0.0, held_up_s - start % 7.0), "start", process, state.refusals)
        elif kind == "start":
            has_place[process] = False
            if known == state.refusals:
                free[process] -= 1
                happen(now + latency_s / 2, "arrive", process)
            happen(now, "look", process)
        elif kind == "arrive":
            happen(now + latency_s / 2, "answer", process, server.answers(now))
        elif kind == "answer":
            free[process] += 1
            good, refused = good + known, refused + (not known)
            (state.take_good if known else state.take_refusal)(now)
            happen(now, "look", process)
    return good / seconds, refused / (good + refused)


@pytest.mark.parametrize("given", [{"latency_s": 0.005}, {}, {"processes": 4}, {"held_up_s": 0.05}])
def test_most_of_what_a_server_allows_gets_through_and_little_is_refused(given):
    good, refused = simulate(lambda _: 200, seconds=60, **given)
    assert good >= 0.9 * 200
    assert refused <= 0.005


def test_a_slow_server_is_asked_nearly_as_much():
    """What is refused is known later, so more of it is, and fewer got through by then."""
    good, refused = simulate(lambda _: 200, latency_s=0.2)
    assert good >= 0.87 * 200
    assert refused <= 0.015


def test_what_is_known_is_tried_less_often():
    good, refused = simulate(lambda _: 200, seconds=600)
    assert good >= 0.95 * 200
    assert refused <= 0.001


@pytest.mark.parametrize("allowed", [5, 20, 1000])
def test_it_finds_any_rate(allowed):
    good, refused = simulate(lambda _: allowed, workers=256, seconds=120)
    assert good >= 0.9 * allowed
    assert refused <= 0.02


def test_it_gives_way_when_less_is_allowed_and_comes_back():
    good, refused = simulate(lambda now: 200 if now < 60 else 20, seconds=120)
    assert good >= 0.9 * 110
    assert refused <= 0.01
    good, _ = simulate(lambda now: 50 if now < 60 else 200, seconds=180)
    assert good >= 0.78 * (50 * 60 + 200 * 120) / 180


def test_a_server_that_closes_for_most_of_a_minute_is_asked_as_fast_as_before_when_it_opens():
    good, refused = simulate(lambda _: 1200, window_s=60.0, seconds=600)
    assert good >= 0.95 * 1200 / 60
    assert refused <= 0.08


def test_a_rate_that_nobody_uses_does_not_rise():
    """Twenty requests a second, for ten minutes: a crowd that comes then does not get thousands at once."""
    state = State(used_at=1.0)
    for number in range(12_000):
        state.take_good(1.0 + number / 20)
    assert state.rate(601.0) <= rate.FIRST + 2 * 2 * 20


def test_a_rate_that_was_set_is_not_exceeded():
    good, refused = simulate(lambda _: 1e9, seconds=20, most=30)
    assert 29 <= good <= 30.1
    assert refused == 0


def test_a_server_is_left_alone_for_as_long_as_it_asks():
    state = State(used_at=100.0)
    state.take_refusal(100.0, 17.0)
    assert state.claim(101.0, 1e9) == 117.0
    state.take_refusal(101.0, 1e9)
    assert state.claim(102.0, 1e9) == 101.0 + rate.MAX_PAUSE_S


def test_what_was_long_ago_is_forgotten_and_so_is_a_clock_that_went_back():
    for now in (5000.0, 3.0):
        state = State(level=7.0, next_at=1100.0, used_at=1000.0)
        assert state.claim(now, 1e9) == now
        assert state.level == rate.FIRST


@pytest.mark.parametrize(
    ("given", "expected"),
    [("5", 5.0), ("0.5", 0.5), ("", None), ("soon", None), ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0), ("-3", 0.0)],
)
def test_what_a_server_asks_for_is_read_as_seconds_or_as_a_date(given, expected):
    assert seconds_asked({"retry-after": given} if given else {}, now=10.0) == expected


def _claim(directory, times):
    host = HostRate("https://example.org/x", directory=directory)
    return [host.claim().start for _ in range(times)]


@pytest.mark.slow
def test_processes_share_one_line(tmp_path):
    """Places of four processes are as far apart as those of one."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        starts = sorted(start for each in pool.starmap(_claim, [(tmp_path, 50)] * 4) for start in each)

    gaps = [after - before for before, after in pairwise(starts)]
    assert len(starts) == 200
    assert min(gaps) >= 1 / rate.FIRST - 1e-6
    host = HostRate("https://example.org/other", directory=tmp_path)
    place = host.claim()
    assert not host.is_void(place)
    HostRate("https://user:secret@example.org/y", directory=tmp_path).take_refusal()
    assert host.is_void(place)
    assert [path.name for path in tmp_path.iterdir()] == ["example.org"]
