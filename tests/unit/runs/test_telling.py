"""Whoever watches a run is told as often as wanted, and less often where telling takes long."""

from types import SimpleNamespace

import pytest

from gristmill.metrics.history import read_history
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs import progress as telling
from gristmill.runs.progress import COST_SHARE, MOST_S, SNAPSHOT_S, Telling


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(telling, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def count_snapshots(clock, *, cost_s, seconds):
    told = []
    watcher = Telling(None, told.append, logging_interval=1.0)

    def make(fresh):
        clock.now += cost_s
        return fresh

    end = clock.now + seconds
    while clock.now < end:
        watcher.tell([], make)
        clock.now += 0.01
    return len(told)


def test_cheap_snapshots_are_made_at_their_interval(clock):
    assert count_snapshots(clock, cost_s=0.0, seconds=10.0) == pytest.approx(10.0 / SNAPSHOT_S, abs=2)


def test_dear_snapshots_take_a_share_of_the_time_only(clock):
    made = count_snapshots(clock, cost_s=0.01, seconds=100.0)
    assert 1 < made <= 1 + 100.0 * COST_SHARE / 0.01


def test_whoever_watches_is_told_now_and_then_however_dear_it_is(clock):
    made = count_snapshots(clock, cost_s=0.5, seconds=100.0)
    assert made == pytest.approx(100.0 / (MOST_S + 0.5), abs=2)


def test_nobody_is_told_that_nothing_has_happened_yet(clock):
    told = []
    watcher = Telling(None, told.append, logging_interval=1.0)
    watcher.tell([], list)
    assert told == []
    clock.now += SNAPSHOT_S
    watcher.tell([], list)
    assert told == [[]]


class Seldom:
    """An observer that wants a snapshot every five seconds."""

    snapshot_s = 5.0

    def __init__(self):
        self.told = []

    def __call__(self, snapshot):
        self.told.append(snapshot)


def test_whoever_wants_to_know_seldom_is_told_seldom(clock):
    seldom = Seldom()
    watcher = Telling(None, seldom, logging_interval=1.0)
    start = clock.now
    while clock.now < start + 16.0:
        watcher.tell([], lambda _: clock.now - start)
        clock.now += 0.01

    assert seldom.told == pytest.approx([5.0, 10.0, 15.0], abs=0.1)


def test_words_do_not_wait_for_the_next_snapshot_somebody_wants(clock):
    seldom = Seldom()
    watcher = Telling(None, seldom, logging_interval=1.0)
    watcher.tell(["a"], list)
    clock.now += SNAPSHOT_S
    watcher.tell(["a"], list)
    watcher.tell(["a", "b"], list)

    assert seldom.told == [["a"], ["b"]]


def test_a_directory_has_a_status_every_second_whoever_watches(clock):
    written, history = [], []
    directory = SimpleNamespace(write_status=written.append, append_history=history.append)
    watcher = Telling(directory, Seldom(), logging_interval=None)
    start = clock.now
    while clock.now < start + 4.5:
        watcher.tell([], lambda _: snapshot(clock.now - start))
        clock.now += 0.01

    assert [told.elapsed_s for told in written] == pytest.approx([1.0, 2.0, 3.0, 4.0], abs=0.1)
    assert read_history(b"".join(history)).column("run", "", "elapsed_s") == pytest.approx(
        [1.0, 2.0, 3.0, 4.0], abs=0.1
    )


def snapshot(elapsed_s):
    return RunSnapshot("r", "running", elapsed_s, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, (), made_at=1e9 + elapsed_s)


def test_the_first_words_do_not_wait(clock):
    told = []
    watcher = Telling(None, told.append, logging_interval=1.0)
    watcher.tell([], list)
    watcher.tell(["a"], list)
    watcher.tell(["a", "b"], list)
    assert told == [["a"]]


def test_the_end_is_told_at_once_whatever_it_costs(clock):
    told = []
    watcher = Telling(None, told.append, logging_interval=1.0)

    def make(fresh):
        clock.now += 10.0
        return list(fresh)

    watcher.tell(["a"], make)
    watcher.tell(["a", "b"], make)
    watcher.tell(["a", "b"], make, at_once=True)
    assert told == [["a"], ["b"]]
