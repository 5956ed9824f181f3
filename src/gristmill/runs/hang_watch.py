"""Names what the driver has been at for too long: listing inputs, pickling a stage, forcing a file to disk.

Workers are watched by the scheduler, which needs a driver that comes round. Here a thread watches the driver: where it
has got stuck is read off its stack, so nothing has to announce what it is about to do. A thread that waits costs
nothing; one that cannot run, because a library keeps the interpreter to itself, cannot speak either.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from gristmill.stages.base import ProcessingStage

AGAIN = 2.0  # times as long before the user is told again, as for workers

OUR_OWN = ProcessingStage.process_batch.__code__.co_filename  # calls a stage's methods for it

Words = Callable[[], str]


def _to_standard_error(message: str) -> None:
    print(f"gristmill: {message}", file=sys.stderr, flush=True)


class HangWatch:
    """Watches the thread that makes it. `who` begins the message: "planning 'curate' has taken"."""

    def __init__(self, who: str, patience_s: float, tell: Callable[[str], None] = _to_standard_error) -> None:
        self.who = who
        self.patience_s = patience_s
        self.labels: list[Words] = []
        self._tell = tell
        self._thread = threading.get_ident()
        self._over = threading.Event()
        self._since = time.monotonic()
        self._told_at_s = 0.0

    def alive(self) -> None:
        """The watched thread has come round."""
        self._since = time.monotonic()
        self._told_at_s = 0.0

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def watch(self) -> None:
        """Until it is over: the thread's work."""
        wait_s = self.patience_s
        while not self._over.wait(wait_s):
            waited_s = time.monotonic() - self._since
            due_s = max(self.patience_s, AGAIN * self._told_at_s)
            if waited_s >= due_s:
                self._told_at_s = waited_s
                self._tell(f"{self.who} {waited_s:.0f} s: {self._place()}")
                due_s = AGAIN * waited_s
            wait_s = max(0.01, due_s - waited_s)

    def _place(self) -> str:
        frame = sys._current_frames().get(self._thread)
        words = [label() for label in self.labels[-1:]] or stage_call(frame)
        return ", ".join([*words, *_line(frame)])


def stage_call(frame: FrameType | None) -> list[str]:
    """Which method of which stage a thread is in, if it is in one: the one we called, not what that calls in turn."""
    called: tuple[ProcessingStage, str] | None = None  # type: ignore[type-arg]  # of any tasks
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, ProcessingStage) and frame.f_code.co_filename != OUR_OWN:
            if called is not None and called[0] is not owner:
                break
            called = owner, frame.f_code.co_name
        elif called is not None:
            break
        frame = frame.f_back
    return [] if called is None else [f"in {called[1]} of stage {called[0].stage_name()}"]


def _line(frame: FrameType | None) -> list[str]:
    return [] if frame is None else [f"at {frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"]


_watches: dict[int, HangWatch] = {}  # by thread


@contextlib.contextmanager
def watched(who: str, patience_s: float, tell: Callable[[str], None] = _to_standard_error) -> Iterator[None]:
    """Have this thread watched; where it is watched already, by whoever began first."""
    thread = threading.get_ident()
    if thread in _watches:
        yield
        return
    watch = HangWatch(who, patience_s, tell)
    _watches[thread] = watch
    threading.Thread(target=watch.watch, name="gristmill-watchdog", daemon=True).start()
    try:
        yield
    finally:
        del _watches[thread]
        watch.stop()


def alive() -> None:
    """This thread has come round: whatever it does next is something else."""
    watch = _watches.get(threading.get_ident())
    if watch is not None:
        watch.alive()


@contextlib.contextmanager
def waiting_for(words: Words) -> Iterator[None]:
    """This thread waits for somebody; `words` says for whom, should it take long."""
    watch = _watches.get(threading.get_ident())
    if watch is None:
        yield
        return
    watch.labels.append(words)
    try:
        yield
    finally:
        watch.labels.pop()
