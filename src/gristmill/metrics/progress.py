"""`Progress`: the observer of a run on the command line. A live table in a terminal, a line now and then elsewhere.

It only shows what snapshots say; it computes nothing about the run and never touches it.
"""

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console

from gristmill.metrics.rates import Rates
from gristmill.metrics.snapshot import RunSnapshot
from gristmill.metrics.snapshot_view import full_view, one_line

if TYPE_CHECKING:
    from rich.live import Live

LINE_INTERVAL_S = 5.0


class Progress:
    """Call it with each snapshot. Messages appear above the table, in the order they came.

    The runs of a workflow are shown one after the other.
    """

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._rates = Rates()
        self._live: Live | None = None
        self._next_line_s = LINE_INTERVAL_S
        self._run: str | None = None
        self.messages: list[str] = []  # shown so far, so that the summary need not repeat them

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, snapshot: RunSnapshot) -> None:
        """Show a snapshot."""
        if self._quiet:
            return
        if snapshot.name != self._run:
            self.close()
            self._run, self._rates, self._next_line_s = snapshot.name, Rates(), LINE_INTERVAL_S
        self._rates.add(snapshot)
        for message in snapshot.messages:
            self._console.print(message, markup=False)
        self.messages += snapshot.messages
        if self._console.is_terminal:
            self._draw(snapshot)
        elif snapshot.elapsed_s >= self._next_line_s:
            self._next_line_s = snapshot.elapsed_s + LINE_INTERVAL_S
            self._console.print(one_line(snapshot, self._rates), markup=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the last table on the screen and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, snapshot: RunSnapshot) -> None:
        view = full_view(snapshot, self._rates)
        if self._live is None:
            from rich.live import Live

            # Snapshots come a few times a second already, so no thread of rich's own is needed.
            self._live = Live(view, console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._live.update(view, refresh=True)
