"""Where the progress of a run is shown: a table in a terminal, a table in a notebook, a line now and then elsewhere.

All of them write to standard error, which may be closed or on a full disk: what cannot be shown is left out, because a
run does not fail for want of an audience. rich is imported when there is a table to draw.
"""

import contextlib
import importlib
import io
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Protocol, TextIO

import msgspec

from gristmill.metrics.log_lines import is_json, log_line
from gristmill.metrics.snapshot import SNAPSHOT_S, Rates, RunSnapshot
from gristmill.metrics.snapshot_line import one_line
from gristmill.metrics.spoken import ENDED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

LINES_S = 1.0  # where nothing moves, snapshots serve to notice that documents are being quarantined
NOTEBOOK_COLUMNS = 100
NOTEBOOK_S = 1.0  # between two drawings: each is a message to a browser


class Pace(msgspec.Struct, frozen=True):
    """When something is shown for the first time, and how often lines follow."""

    table_s: float
    first_line_s: float
    line_s: float


ON_THE_COMMAND_LINE = Pace(table_s=0.0, first_line_s=5.0, line_s=5.0)
IN_A_PROGRAM = Pace(table_s=1.0, first_line_s=10.0, line_s=30.0)  # a script that runs for a second needs no table


class Screen(Protocol):
    """One place. `show` gets every snapshot and decides whether it is time."""

    snapshot_s: float  # how often it has use for one

    def say(self, text: str) -> None:
        """Write lines that stay, above what changes."""

    def show(self, snapshot: RunSnapshot, rates: Rates) -> None:
        """Show how the run is doing."""

    def close(self) -> None:
        """Leave the last state where it is; the next run begins below it."""


class Lines:
    """A log file, or anything else that is neither a terminal nor a notebook."""

    snapshot_s = LINES_S

    def __init__(self, pace: Pace, stream: TextIO | None = None) -> None:
        self._pace = pace
        self._stream = stream
        self._next_s = pace.first_line_s

    def say(self, text: str) -> None:
        stream = self._stream or sys.stderr
        if stream is None:  # as in a program without a console; `print` would fall back to standard output
            return
        with _heard_or_not(stream):
            print(_as_json(text) if is_json() else text, file=stream, flush=True)

    def show(self, snapshot: RunSnapshot, rates: Rates) -> None:
        if snapshot.elapsed_s >= self._next_s:
            self._next_s = snapshot.elapsed_s + self._pace.line_s
            self.say(one_line(snapshot, rates))

    def close(self) -> None:
        self._next_s = self._pace.first_line_s


class Terminal:
    """A table that is drawn again and again, and messages above it."""

    snapshot_s = SNAPSHOT_S

    def __init__(self, pace: Pace, console: "Console | None" = None) -> None:
        self._pace = pace
        self._console = console
        self._live: Live | None = None

    def say(self, text: str) -> None:
        if self._live is None and self._console is None:
            Lines(self._pace).say(text)
            return
        console = self._made_console()
        with _heard_or_not(console.file):
            console.print(text, markup=False, soft_wrap=True)

    def show(self, snapshot: RunSnapshot, rates: Rates) -> None:
        if self._live is None and snapshot.elapsed_s < self._pace.table_s:
            return
        from rich.live import Live

        from gristmill.metrics.snapshot_view import live_view

        console = self._made_console()
        view = live_view(snapshot, rates)
        with _heard_or_not(console.file):
            if self._live is None:
                # Snapshots come a few times a second already, so no thread of rich's own is needed.
                self._live = Live(view, console=console, auto_refresh=False, transient=False)
                self._live.start()
            self._live.update(view, refresh=True)

    def close(self) -> None:
        if self._live is not None:
            live, self._live = self._live, None
            with _heard_or_not(live.console.file):
                live.stop()

    def _made_console(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False)
        return self._console


class Notebook:
    """One output of a cell that is replaced as the run goes on; messages below it."""

    snapshot_s = SNAPSHOT_S

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._handle: object = None
        self._next_s = pace.table_s

    def say(self, text: str) -> None:
        Lines(self._pace).say(text)

    def show(self, snapshot: RunSnapshot, rates: Rates) -> None:
        if snapshot.elapsed_s < self._next_s and not (self._handle and snapshot.state in ENDED):
            return
        self._next_s = snapshot.elapsed_s + NOTEBOOK_S
        import html

        display = importlib.import_module("IPython.display")  # loaded already: this is a notebook
        shown = display.HTML(f"<pre>{html.escape(_drawn(snapshot, rates))}</pre>")
        if self._handle is None:
            self._handle = display.display(shown, display_id=True)
        else:
            self._handle.update(shown)  # type: ignore[attr-defined]  # what IPython returns for a display_id

    def close(self) -> None:
        self._handle, self._next_s = None, self._pace.table_s


def choose_screen(pace: Pace) -> Screen:
    """Where a run started by this process is best shown."""
    if in_notebook():
        return Notebook(pace)
    return Terminal(pace) if _is_terminal(sys.stderr) and not is_json() else Lines(pace)


_WORKER = r"\bworker (\d+)\b(?: \([^)]*\))? of (\S+)"


def _as_json(text: str) -> str:
    """Every line as an object; a message about a worker says which, and of which stage."""
    made = []
    for line in filter(str.strip, text.splitlines()):
        found = re.search(_WORKER, line)
        worker, stage = (found[1], found[2]) if found else ("", "")
        made.append(log_line(line, level="warning" if found else "info", stage=stage, worker=worker))
    return "\n".join(made)


def say(text: str) -> None:
    """Write to standard error, if it can be written to."""
    Lines(ON_THE_COMMAND_LINE).say(text)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook. IPython is asked only if it is loaded already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def screen_on(console: "Console", stream: TextIO) -> Screen:
    """A screen somewhere other than on standard error."""
    return Terminal(ON_THE_COMMAND_LINE, console) if console.is_terminal else Lines(ON_THE_COMMAND_LINE, stream)


def _is_terminal(stream: TextIO | None) -> bool:
    # Programs put objects of their own there, which may have nothing but a `write`.
    if stream is None or getattr(stream, "closed", False) or not hasattr(stream, "isatty"):
        return False
    return stream.isatty()


@contextlib.contextmanager
def _heard_or_not(stream: IO[str] | None) -> Iterator[None]:
    """Let what cannot be written go unsaid: nobody reads it, and the run must go on."""
    try:
        yield
    except OSError:
        pass
    except ValueError:
        if not getattr(stream, "closed", False):
            raise


def _drawn(snapshot: RunSnapshot, rates: Rates) -> str:
    from rich.console import Console

    from gristmill.metrics.snapshot_view import live_view

    page = io.StringIO()
    # Left to itself, rich in a notebook would display what is only to be drawn.
    console = Console(file=page, width=NOTEBOOK_COLUMNS, color_system=None, highlight=False, force_jupyter=False)
    console.print(live_view(snapshot, rates))
    return page.getvalue()
