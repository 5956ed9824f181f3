"""One rate for a server, found out by what it answers: in virtual time against a model, and shared by processes."""

import heapq
import multiprocessing
from collections import deque
from itertools import count, pairwise

import pytest

from gristmill.storage import rate
from gristmill.storage.rate import HostRate, State, seconds_asked


def simulate(allowed, *, workers=64, latency_s=0.05, seconds=60.0, most=float("inf")):
    """A server that refuses everything for a second once more than `allowed(time)` came in the last second.

    Returns good answers a second, the share that was refused, and the requests in each second.
    """
    state = State(used_at=1.0)
    recent, refusing_until = deque(), 0.0
    good = refused = 0
    order = count()
    events = [(1.0, next(order), "claim", 0) for _ in range(workers)]
    heapq.heapify(events)
    while (event := heapq.heappop(events))[0] < 1.0 + seconds:
        now, _, kind, known = event
        following = None
        if kind == "claim":
            following = (state.claim(now, most), "start", state.refusals)
        elif kind == "start":
            following = (now, "claim", 0) if known != state.refusals else (now + latency_s / 2, "arrive", 0)
        elif kind == "arrive":
            while recent and recent[0] <= now - 1.0:
                recent.popleft()
            fine = now >= refusing_until and len(recent) < allowed(now - 1.0)
            if fine:
                recent.append(now)
            elif now >= refusing_until:
                refusing_until = now + 1.0
            following = (now + latency_s / 2, "answer", fine)
        else:
            if known:
                good += 1
                state.take_good(now)
            else:
                refused += 1
                state.take_refusal(now)
            following = (now, "claim", 0)
        heapq.heappush(events, (following[0], next(order), following[1], following[2]))
    return good / seconds, refused / (good + refused)


@pytest.mark.parametrize("latency_s", [0.005, 0.05, 0.2])
def test_most_of_what_a_server_allows_gets_through_and_little_is_refused(latency_s):
    good, refused = simulate(lambda _: 200, latency_s=latency_s, seconds=60)
    assert good >= 0.85 * 200
    assert refused <= 0.02


@pytest.mark.parametrize("allowed", [5, 20, 1000])
def test_it_finds_any_rate(allowed):
    good, refused = simulate(lambda _: allowed, workers=256, seconds=120)
    assert good >= 0.83 * allowed
    assert refused <= 0.04


def test_it_gives_way_when_less_is_allowed_and_comes_back():
    good, refused = simulate(lambda now: 200 if now < 60 else 20, seconds=120)
    assert good >= 0.8 * 110
    assert refused <= 0.02
    good, _ = simulate(lambda now: 50 if now < 60 else 200, seconds=180)
    assert good >= 0.65 * (50 * 60 + 200 * 120) / 180


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
        state = State(rising=7.0, next_at=1100.0, used_at=1000.0)
        assert state.claim(now, 1e9) == now
        assert state.rising == rate.FIRST


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
