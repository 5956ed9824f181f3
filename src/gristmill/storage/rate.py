"""`HostRate`: how many requests a second a server gets, one number for all workers of a machine.

What a server allows is not known, so it is found out, as TCP finds out what a network carries:

    rise      from `FIRST` a second, one more for each good answer, until the first refusal (403, 429, 503,
              no answer in time). What got through in the second before is what the server allows.
    pause     all wait for a second, or as long as the server asks for, and then claim new places in the line.
              Those claimed before were spaced by the rate that was too high.
    recover   from 70 % back to a little less than what is allowed.
    hold      stay there.
    try       a twentieth of a request more for each good answer, until the next refusal: pause again.

If a refusal finds the same limit as the one before, what is allowed is known: recovering is quick, and the rate holds
twice as long before more is tried. A server that refuses without a good answer in between counts as closed, which says
nothing about a rate: pauses grow, and the rate stays as it is.

The state is in a file, under a lock, in a directory of this user and machine, so two runs that ask the same server
share it too. With a rate for each worker, every one of them would have to be refused to find out. Times are those of
the machine's monotonic clock, which all processes share. Numbers: docs/log/2026-11-17-rate.md.
"""

import contextlib
import fcntl
import os
import re
import struct
import tempfile
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from gristmill.errors import MachineError

FIRST = 50.0  # requests a second
LEAST = 0.5
CUT = 0.7
CUT_S = 2.0  # between two cuts: requests under way are refused together
RECOVERY_S = 5.0
QUICK_RECOVERY_S = 1.0  # where what is allowed is known
HOLD_S = 20.0  # each try that is refused costs all workers a second
MAX_HOLD_S = 160.0
TRY = 0.05  # of a request more for each good answer: twice as many after 14 s
BELOW = 0.97  # of what is allowed: right at the limit, the next request may be one too many
SAME = 0.1  # by how much two findings may differ
PAUSE_S = 1.0
MAX_CLOSED_S = 8.0  # between two looks at a server that is closed
MAX_PAUSE_S = 600.0  # however long a server says
FORGET_S = 600.0  # after which an idle server is asked as if it were new
REFUSED = frozenset({403, 429, 503})

SOON_S = 0.005  # a place due this soon is claimed together with the one before

_FORM = struct.Struct("=13dq??")
_REFUSALS, _REFUSALS_AT = struct.Struct("=q"), struct.calcsize("=13d")


class State(msgspec.Struct):
    """What is known of a server. Times are in seconds, and given: nothing here looks at a clock."""

    level: float = msgspec.field(default_factory=lambda: FIRST)  # the rate, except while recovering
    allowed: float = 0.0  # what the server is thought to allow
    cut_at: float = 0.0
    resumed_at: float = 0.0  # when the pause after the last refusal was over
    recovery_s: float = RECOVERY_S
    hold_s: float = HOLD_S
    pause_s: float = msgspec.field(default_factory=lambda: PAUSE_S)
    next_at: float = 0.0  # when the next request may start
    paused_until: float = 0.0
    used_at: float = 0.0
    window_at: float = 0.0  # beginning of the second in which good answers are counted
    window: float = 0.0
    window_before: float = 0.0  # those of the second before it
    refusals: int = 0
    was_refused: bool = False
    is_open: bool = False  # there has been a good answer since the last refusal

    def rate(self, now: float) -> float:
        """Requests a second."""
        missing = 1.0 - (now - self.resumed_at) / self.recovery_s if self.was_refused else 0.0
        if missing <= 0.0:
            return self.level
        return max(LEAST, self.level * (1.0 - (1.0 - CUT) * min(1.0, missing) ** 3))

    def claim(self, now: float, most: float) -> float:
        """Take the next place in the line of requests; return when its time comes."""
        if abs(now - self.used_at) > FORGET_S:  # used long ago, or before the machine was restarted
            self._forget()
        start = max(now, self.next_at, self.paused_until)
        self.next_at = start + 1.0 / min(self.rate(start), most)
        self.used_at = now
        return start

    def take_good(self, now: float, number: int = 1) -> None:
        """Note good answers."""
        self._turn(now)
        self.window += number
        self.is_open = True
        if self.was_refused and now < self.resumed_at + self.recovery_s + self.hold_s:
            return
        more = number * (TRY if self.was_refused else 1.0)
        # Not far beyond what is used: a rate that has not been tried is not known to be allowed.
        self.level = max(self.level, min(self.level + more, FIRST + 2.0 * (self.window + self.window_before)))

    def take_refusal(self, now: float, asked_s: float | None = None) -> None:
        """Give way: the server has refused, or has not answered. `asked_s` is how long it asks to be left alone."""
        if now - self.cut_at >= CUT_S or not self.was_refused:
            if self.is_open or not self.was_refused:
                self._cut(now)
            else:
                self.pause_s = min(2.0 * self.pause_s, MAX_CLOSED_S)
            self.cut_at, self.was_refused, self.is_open = now, True, False
        pause = self.pause_s if asked_s is None else min(max(asked_s, 0.0), MAX_PAUSE_S)
        self.paused_until = max(self.paused_until, now + pause)
        self.resumed_at = self.next_at = self.paused_until
        self.refusals += 1

    def _cut(self, now: float) -> None:
        rate = self.rate(now)
        # Where hardly anything was asked in the last second, that says little about what is allowed.
        found = max(LEAST, min(rate, max(self._got_through(now), CUT * CUT * rate)))
        has_recovered = self.was_refused and now >= self.resumed_at + self.recovery_s
        is_known = has_recovered and abs(found - self.allowed) <= max(1.0, SAME * self.allowed)
        self.recovery_s = QUICK_RECOVERY_S if is_known else RECOVERY_S
        self.hold_s = min(2.0 * self.hold_s, MAX_HOLD_S) if is_known else HOLD_S
        self.pause_s = PAUSE_S
        self.allowed, self.level = found, max(LEAST, BELOW * found)

    def _forget(self) -> None:
        for name, value in msgspec.structs.asdict(State(refusals=self.refusals)).items():
            setattr(self, name, value)

    def _turn(self, now: float) -> None:
        if now - self.window_at >= 1.0:
            self.window_before = self.window if now - self.window_at < 2.0 else 0.0
            self.window, self.window_at = 0.0, now

    def _got_through(self, now: float) -> float:
        self._turn(now)
        return self.window_before * max(0.0, 1.0 - (now - self.window_at)) + self.window


class Place(NamedTuple):
    """A place in the line of requests: when its time comes, on the monotonic clock, and what it was claimed after."""

    start: float
    refusals: int


class HostRate:
    """The rate of one server, shared by all processes of this user on this machine. An object is for one thread."""

    def __init__(self, url: str, *, max_rate: float | None = None, directory: Path | None = None) -> None:
        host = urlsplit(url).netloc.rpartition("@")[2] or "none"
        self._most = float("inf") if max_rate is None else max_rate
        path = (directory or _directory()) / re.sub(r"[^A-Za-z0-9.-]", "_", host.lower())[:200]
        # Opened once, not for each request: opening takes as long as all the rest.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._descriptor)

    def claim(self, good: int = 0) -> Place:
        """Take a place in the line, and note `good` answers since the last time: both under one lock."""
        return self.claim_some(1, good)[0]

    def claim_some(self, most: int, good: int = 0) -> list[Place]:
        """Take up to `most` places whose time comes within a few milliseconds, but at least one."""
        now = time.monotonic()
        with self._state() as state:
            if good:
                state.take_good(now, good)
            places = [Place(state.claim(now, self._most), state.refusals)]
            while len(places) < most and state.next_at < now + SOON_S and state.paused_until <= now:
                places.append(Place(state.claim(now, self._most), state.refusals))
            return places

    def is_void(self, place: Place) -> bool:
        """Whether a request was refused since a place was claimed: a new one has to be claimed."""
        # Without the lock: eight bytes are read whole, and what comes a moment later counts the next time.
        found = os.pread(self._descriptor, _REFUSALS.size, _REFUSALS_AT)
        return len(found) == _REFUSALS.size and _REFUSALS.unpack(found)[0] != place.refusals

    def wait(self) -> None:
        """Wait until a request may start."""
        while True:
            place = self.claim()
            if (seconds := place.start - time.monotonic()) > 0:
                time.sleep(seconds)
                if self.is_void(place):
                    continue
            return

    def take_good(self, number: int = 1) -> None:
        """Note good answers."""
        with self._state() as state:
            state.take_good(time.monotonic(), number)

    def take_refusal(self, asked_s: float | None = None) -> None:
        """Note a refusal; `asked_s` is how long the server asked to be left alone."""
        with self._state() as state:
            state.take_refusal(time.monotonic(), asked_s)

    @contextlib.contextmanager
    def _state(self) -> Iterator[State]:
        descriptor = self._descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            content = os.pread(descriptor, _FORM.size, 0)
            state = State(*_FORM.unpack(content)) if len(content) == _FORM.size else State()
            yield state
            os.pwrite(descriptor, _FORM.pack(*msgspec.structs.astuple(state)), 0)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _directory() -> Path:
    """A directory of this user, below that for temporary files."""
    path = Path(tempfile.gettempdir()) / f"gristmill-rates-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.is_symlink():
        raise MachineError(f"{path}: expected a directory of this user; it belongs to another user. Remove it")
    return path


def seconds_asked(headers: dict[str, str], now: float | None = None) -> float | None:
    """Return how long a server asks to be left alone: `Retry-After` in seconds, or as a date; None if it does not."""
    given = headers.get("retry-after", "").strip()
    if not given:
        return None
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - (time.time() if now is None else now))
    except ValueError:
        return None
