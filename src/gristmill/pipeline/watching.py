"""`Watching`: what a call of `Pipeline.run`, or of a workflow, shows to whoever started it.

Progress in a terminal, a notebook or a log; warnings at once; the summary at the end: what the command line shows. With
an observer of the caller's own there is no display, but warnings and summary stay. `quiet` leaves out all of it. All of
it goes to standard error: standard output is the program's.
"""

from types import TracebackType
from typing import TYPE_CHECKING

from gristmill.backends.base import BaseExecutor
from gristmill.runs.options import Observer
from gristmill.runs.result import RunResult

if TYPE_CHECKING:
    from gristmill.metrics.progress import Progress
    from gristmill.metrics.snapshot import RunSnapshot


class Watching:
    """One call. Give `observer` to the run, and `tell` what came of it."""

    def __init__(self, name: str, executor: BaseExecutor, *, quiet: bool, observer: Observer | None) -> None:
        self._name = name
        self._executor = executor
        self._quiet = quiet
        self._instead = observer
        self._progress: Progress | None = None
        self.observer: Observer | None = observer if quiet else self

    def __enter__(self) -> "Watching":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.close()
        result = getattr(error, "result", None)  # a run that stopped at a limit has books too
        if isinstance(result, RunResult):
            self.tell(result)

    def tell(self, result: object) -> None:
        """Say what nobody has heard yet, and the summary: what `print` would show of the result."""
        if self._quiet:
            return
        progress = self._made()
        progress.close()
        messages, heard = result.messages if isinstance(result, RunResult) else [], set(progress.messages)
        news = [message for message in messages if message not in heard]
        progress.say("\n".join([*news, f"{self._name}:", str(result)]))

    def __call__(self, snapshot: "RunSnapshot") -> None:
        """Show a snapshot."""
        self._made()(snapshot)

    @property
    def snapshot_s(self) -> float:
        """How often it wants a snapshot."""
        return self._made().snapshot_s

    def _made(self) -> "Progress":
        """The display, made when there is something to show: until then the workers are more urgent."""
        if self._progress is None:
            from dataclasses import replace

            from gristmill.metrics.progress import Progress
            from gristmill.metrics.screens import IN_A_PROGRAM

            every = self._executor.progress_interval
            pace = replace(IN_A_PROGRAM, line_s=every, first_line_s=min(every, IN_A_PROGRAM.first_line_s))
            self._progress = Progress(pace=pace, shows=self._executor.show_progress, instead=self._instead)
        return self._progress
