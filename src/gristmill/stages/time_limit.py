"""`time_limit`: at most a given number of seconds for one document, without a thread or a process for it.

The operating system's interval timer ends what runs in Python, in the main thread of a process, within milliseconds. It
does not end a call into C: Python runs a signal's handler when that call returns. So there are three layers, each for
what the one before it cannot see: sizes and depths that are known before anything is parsed, this timer, and the
engine's `deadline_s`, which ends the process (ADR 0055).

Limits may be nested, and other code may use the timer: the remaining time of the timer that was there is restored, and
whichever is due first comes first. In any thread but the main one there is no timer, and nothing is limited here.
"""

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

from gristmill.errors import TimeLimitExceeded

P = ParamSpec("P")
T = TypeVar("T")

AGAIN_S = 0.5  # what a library has swallowed (in `__del__`, in a bare `except:`) is raised again after this
AT_ONCE_S = 1e-6  # for a timer that was due meanwhile; zero would stop it


class _Expired(BaseException):
    """Not an Exception: libraries catch those, take the page for a bad one, and go on with the next attempt."""

    def __init__(self, owner: "_Timer") -> None:
        self.owner = owner


class _Timer:
    """One limit that is running."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False
        self._before: Callable[[int, FrameType | None], object] | int | None = signal.SIG_DFL
        self._outer_due: float | None = None  # when the timer that was there before is due
        self._outer_again_s = 0.0

    def arm(self) -> None:
        now = time.monotonic()
        self._due = now + self._seconds
        left, self._outer_again_s = signal.getitimer(signal.ITIMER_REAL)
        self._outer_due = now + left if left else None
        self._before = signal.signal(signal.SIGALRM, self._ring)
        self._armed = True
        first = self._seconds if not left else min(self._seconds, left)
        signal.setitimer(signal.ITIMER_REAL, first, AGAIN_S)

    def disarm(self) -> None:
        """Put everything back. May be called again if a signal has interrupted it, and does nothing when it is done."""
        if not self._armed:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)  # runs handlers of signals that have come: none comes later
        self._armed = False
        if self._outer_due is not None:
            left = max(AT_ONCE_S, self._outer_due - time.monotonic())
            signal.setitimer(signal.ITIMER_REAL, left, self._outer_again_s)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._outer_due is not None and now >= self._outer_due and callable(self._before):
            self._outer_due = now + self._outer_again_s if self._outer_again_s else None
            self._before(number, frame)  # most raise
        if now >= self._due:
            raise _Expired(self)
        signal.setitimer(signal.ITIMER_REAL, self._due - now, AGAIN_S)


def can_limit() -> bool:
    """Whether a call made here can be limited: in the main thread, on a system that has the timer.

    A handler set from C could not be put back, so it is left alone.
    """
    in_main = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(signal.SIGALRM) is not None


def time_limit(seconds: float | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the function returns, or raise TimeLimitExceeded after that many seconds; None means no limit.

    Where `can_limit` says no, the function runs as long as it takes.
    """
    if seconds is None or not can_limit():
        return function(*args, **kwargs)
    timer = _Timer(seconds)
    try:
        try:
            timer.arm()
            return function(*args, **kwargs)
        finally:
            timer.disarm()
    except _Expired as expired:
        # It may have been raised within `disarm`, or in the moment between the two lines above.
        timer.disarm()
        if expired.owner is not timer:
            raise
    raise TimeLimitExceeded(f"time_limit: expected to finish within {seconds:g} s; it was stopped")
