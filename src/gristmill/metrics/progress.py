"""`Progress`: the observer that shows a run to people. The command line, scripts and notebooks use the same.

It only shows what snapshots say; it computes nothing about the run and never touches it.
"""

from collections.abc import Callable
from types import TracebackType

from gristmill.metrics.screens import ON_THE_COMMAND_LINE, Pace, Screen, choose_screen
from gristmill.metrics.snapshot import SNAPSHOT_S, Rates, RunSnapshot
from gristmill.metrics.spoken import Spoken


class Progress:
    """Call it with each snapshot. Warnings appear at once, above the table, in the order they came.

    The runs of a workflow are shown one after the other. An `instead` gets the snapshots in place of the display;
    warnings are shown all the same.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        pace: Pace = ON_THE_COMMAND_LINE,
        screen: Screen | None = None,
        shows: bool = True,
        instead: Callable[[RunSnapshot], None] | None = None,
    ) -> None:
        self._quiet = quiet
        self._screen = screen or choose_screen(pace)
        self._shows = shows and instead is None
        self._instead = instead
        self._rates = Rates()
        self._spoken = Spoken()
        self._run: str | None = None
        self.messages: list[str] = []  # taken in so far, so that the summary need not repeat them

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, snapshot: RunSnapshot) -> None:
        """Show a snapshot."""
        if self._instead is not None:
            self._instead(snapshot)
        if self._quiet:
            return
        if snapshot.name != self._run:
            self.close()
            self._run, self._rates, self._spoken = snapshot.name, Rates(), Spoken()
        self.messages += snapshot.messages
        for line in self._spoken.news(snapshot):
            self._screen.say(line)
        if self._shows:
            self._rates.add(snapshot)
            self._screen.show(snapshot, self._rates)

    @property
    def snapshot_s(self) -> float:
        """How often it wants a snapshot."""
        return self._screen.snapshot_s if self._instead is None else getattr(self._instead, "snapshot_s", SNAPSHOT_S)

    def say(self, text: str) -> None:
        """Write lines that stay, unless quiet."""
        if not self._quiet:
            self._screen.say(text)

    def close(self) -> None:
        """Leave the last table on the screen and give the terminal back."""
        self._screen.close()
