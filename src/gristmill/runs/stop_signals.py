"""Ctrl-C and SIGTERM while a run lasts: both end it cleanly.

Outside the driver's loop they raise KeyboardInterrupt, as Ctrl-C always does. Inside it they are only noted, because an
exception between a ledger line and its rename, or halfway through a change of the scheduler's state, would leave the
books wrong; the loop looks at least every tenth of a second. A second signal is impatience, and raises.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_Handler = Callable[[int, FrameType | None], object] | signal.Handlers
_OURS_TO_TAKE: dict[signal.Signals, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


class StopSignals:
    """Handlers for the time of one run; a program's own handlers are left alone."""

    def __init__(self) -> None:
        self.noted = False
        self._only_note = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle both signals; only the main thread may."""
        taken = []
        if threading.current_thread() is threading.main_thread():
            taken = [number for number, usual in _OURS_TO_TAKE.items() if signal.getsignal(number) is usual]
        for number in taken:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, _OURS_TO_TAKE[number])

    @contextlib.contextmanager
    def only_noted(self) -> Iterator[None]:
        """Set `noted` instead of raising."""
        self._only_note = True
        try:
            yield
        finally:
            self._only_note = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._only_note and not self.noted:
            self.noted = True
            return
        raise KeyboardInterrupt
