"""`WatchedRun`: the state of one run, read from its directory when it has changed and somebody asks.

Takes no lock and writes nothing, so it cannot disturb the run. Whether the processes of a run live, and where its
directory is, is known elsewhere in the package: the code that starts the dashboard hands in a `Source`.
"""

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from gristmill.dashboard.run_data import Life
from gristmill.metrics.snapshot import Rates, RunSnapshot

ENDED = ("finished", "stopped", "failed", "killed")
LOOK_S = 0.5  # between two looks at the file, however many watch
WORK_SHARE = 0.05  # of one CPU: what is worked out again for a live run takes at most this

Found = TypeVar("Found")


class Source(Protocol):
    """What is asked again and again of a run directory."""

    def read(self, name: str) -> bytes | None:
        """Return what a file says, or None if it is not there."""

    def life(self) -> Life:
        """Return which process runs here."""


class State(msgspec.Struct, frozen=True):
    """What is known of a run at a moment. `number` grows with every change."""

    number: int
    run: str  # state of it; "killed" if its process is gone and did not say so, "" if nothing was written yet
    process: str
    snapshot: RunSnapshot | None
    documents_per_s: tuple[float, ...] = ()  # into each stage
    bytes_per_s: float = 0.0  # of the input


class WatchedRun:
    """A run that is looked at now and then. May be used by many threads."""

    def __init__(self, source: Source, *, look_s: float = LOOK_S) -> None:
        self.source = source
        self._look_s = look_s
        self._lock = threading.Lock()
        self._looked_at = -math.inf
        self._content: bytes | None = None
        self._rates = Rates()
        self._state = State(0, "", "", None)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is to be expected, as far as is known."""
        return self.state().run in ENDED

    def state(self) -> State:
        """Return the latest state."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_at >= self._look_s:
                self._looked_at = now
                self._look()
            return self._state

    def news(self, after: int, ended: threading.Event) -> State | None:
        """Wait about a second for a state later than number `after`; None if there was none."""
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            state = self.state()
            if state.number > after:
                return state
            if ended.wait(LOOK_S / 2):
                return None
        return None

    def _look(self) -> None:
        content, life = self.source.read("status.json"), self.source.life()
        snapshot = self._state.snapshot
        if content is not None and content != self._content:
            self._content = content
            try:
                snapshot = msgspec.json.decode(content, type=RunSnapshot)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return  # of another version, or damaged: what was known stays
            self._rates.add(snapshot)
        if snapshot is None:
            return
        name = "killed" if snapshot.state not in ENDED and not life.is_alive else snapshot.state
        if snapshot is not self._state.snapshot or name != self._state.run:
            self._state = self._told(snapshot, name, life.process)

    def _told(self, snapshot: RunSnapshot, name: str, process: str) -> State:
        per_stage = tuple(self._rates.documents_per_s(number) for number in range(len(snapshot.stages)))
        bytes_per_s = self._rates.bytes_per_s()
        return State(self._state.number + 1, name, process, snapshot, per_stage, bytes_per_s)


class Remembered(Generic[Found]):
    """What was found out at some cost, kept for as long as finding it again would cost too much.

    For a run that has ended it is found out once. For a live one it is found out again when it was asked for and the
    time since the last is twenty times what it took.
    """

    def __init__(self, find: Callable[[], Found], has_ended: Callable[[], bool]) -> None:
        self._find = find
        self._has_ended = has_ended
        self._lock = threading.Lock()
        self._found: Found | None = None
        self._good_until = 0.0
        self._is_final = False

    def get(self) -> Found:
        """Return it. A caller that asks while it is being found waits, and gets the same."""
        with self._lock:
            now = time.monotonic()
            if self._found is not None and (self._is_final or now < self._good_until):
                return self._found
            self._found = None  # two of them at once would be twice the memory
            had_ended = self._has_ended()  # before it is read: what is written meanwhile is read next time
            found = self._find()
            took = time.monotonic() - now
            self._found, self._is_final = found, had_ended
            self._good_until = now + took + max(1.0, took / WORK_SHARE)
            return found
