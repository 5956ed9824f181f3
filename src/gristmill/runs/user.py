"""What a run and its user tell each other: options, Ctrl-C, what is said when nothing moves, where and when it ran."""

import contextlib
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from gristmill import __version__
from gristmill.engine.breaker import DEFAULT_LIMIT, QuarantineLimit
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Observation
from gristmill.storage.file_system import absolute, is_url
from gristmill.worker.machine import memory

if TYPE_CHECKING:
    from gristmill.metrics.snapshot import RunSnapshot
    from gristmill.runs.searches import RunInside


# What a user says about one run: its options when it starts, and Ctrl-C while it runs.

Observer = Callable[["RunSnapshot"], None]  # one that has a `snapshot_s` is told about that often


@dataclass(frozen=True)
class RunOptions:
    """What belongs to one run rather than to the executor."""

    checkpoint_path: Path | str | None = None  # a string only where it is a URL
    rejects_path: str | None = None
    limit: QuarantineLimit = DEFAULT_LIMIT  # of documents that may fail
    fresh: bool = False
    retry_quarantined: bool = False  # try quarantined documents again, though their partitions are committed
    observer: Observer | None = None
    shared: bool = False  # whether others may read the run directory, as far as the umask lets them
    recipe: str = ""  # of the pipeline, kept in the run directory so that it can be built again
    observation: Observation = field(default_factory=Observation)  # what is recorded about documents
    run_inside: "RunInside | None" = None  # runs the pipelines of stages that search

    def __post_init__(self) -> None:
        # A stage may change the working directory, and the next call may come from another one.
        if self.rejects_path is not None:
            object.__setattr__(self, "rejects_path", absolute(self.rejects_path))
        if self.checkpoint_path is not None:
            object.__setattr__(self, "checkpoint_path", _absolute_path(self.checkpoint_path))


def _absolute_path(path: Path | str) -> Path | str:
    full = absolute(str(path))
    return full if is_url(full) else Path(full)


# Ctrl-C and SIGTERM during a run: both end it cleanly.
#
# Outside the driver's loop they raise KeyboardInterrupt, as Ctrl-C always does. Inside it they are only noted, because
# an exception between a ledger line and its rename, or halfway through a change of the scheduler's state, would leave
# the books wrong; the loop looks at least every tenth of a second. A second signal is impatience, and raises.
# While a run has others inside it, those of a search, a signal is for the innermost.

_Handler = Callable[[int, FrameType | None], object] | signal.Handlers
_OURS_TO_TAKE: dict[signal.Signals, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


_handling: list["StopSignals"] = []  # the run that took the signals, and those inside it


class StopSignals:
    """Handlers for the time of one run; a program's own handlers are left alone."""

    def __init__(self) -> None:
        self.noted = False
        self._only_note = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        """Handle both signals; only the main thread may."""
        taken = []
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if not _handling:
            taken = [number for number, usual in _OURS_TO_TAKE.items() if signal.getsignal(number) is usual]
        for number in taken:
            signal.signal(number, _tell_innermost)
        _handling.append(self)
        try:
            yield
        finally:
            _handling.remove(self)
            for number in taken:
                signal.signal(number, _OURS_TO_TAKE[number])
        if self.noted and _handling:  # it came too late to stop this run
            _handling[-1].handle()

    @contextlib.contextmanager
    def only_noted(self) -> Iterator[None]:
        """Set `noted` instead of raising."""
        self._only_note = True
        try:
            yield
        finally:
            self._only_note = False

    def handle(self) -> None:
        """A signal has come."""
        if self._only_note and not self.noted:
            self.noted = True
            return
        raise KeyboardInterrupt


def _tell_innermost(number: int, frame: FrameType | None) -> None:
    del number, frame
    _handling[-1].handle()


AGAIN = 2.0  # times as long before the user is told again, as for workers

OUR_OWN = ProcessingStage.process_batch.__code__.co_filename  # calls a stage's methods on its behalf

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
        """The watched thread is alive: start counting again."""
        self._since = time.monotonic()
        self._told_at_s = 0.0

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()

    def watch(self) -> None:
        """Watch until it is over; the work of the watching thread."""
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
    """Which method of which stage a thread is in, if it is in one: the one we called, not what it calls in turn."""
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
    """Have this thread watched; if it is watched already, the first watch stays."""
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
    """Say that this thread is alive: whatever it does next is something new."""
    watch = _watches.get(threading.get_ident())
    if watch is not None:
        watch.alive()


@contextlib.contextmanager
def waiting_for(words: Words) -> Iterator[None]:
    """Note what this thread waits for; `words` says it, should it take long."""
    watch = _watches.get(threading.get_ident())
    if watch is None:
        yield
        return
    watch.labels.append(words)
    try:
        yield
    finally:
        watch.labels.pop()


LIBRARIES = ("msgspec", "numpy", "pyarrow", "ray", "torch")  # of which the version may matter


def setting(wall_s: float, peak_memory_bytes: int) -> dict[str, object]:
    """Versions, host, times and the most memory of the session that has ended now."""
    ended_at = time.time()
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in LIBRARIES}
    return {
        "versions": {
            "gristmill": __version__,
            "python": platform.python_version(),
            **{name: str(version) for name, version in loaded.items() if version},
        },
        "host": {
            "name": platform.node(),
            "system": f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "memory_bytes": memory()[1],
        },
        "started_at": round(ended_at - wall_s, 3),
        "ended_at": round(ended_at, 3),
        "peak_memory_bytes": peak_memory_bytes,
    }
