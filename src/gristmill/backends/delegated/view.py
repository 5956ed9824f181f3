"""`View`: what a run that another engine schedules looks like, for whoever watches it."""

import os

from gristmill.backends.delegated.root_books import RootBooks
from gristmill.metrics.snapshot import RunSnapshot, StageCounts, StageSnapshot
from gristmill.runs.progress import BookSnapshots, Telling
from gristmill.runs.segment import Segment
from gristmill.worker.memory import resident_bytes


class View:
    """What is known of a run: receipts, and how many workers there are and have work."""

    def __init__(self, run: Segment, books: RootBooks, logging_interval: float) -> None:
        self.messages: list[str] = []
        self.workers: dict[int, int] = {}  # by group
        self.busy: dict[int, int] = {}
        self._groups = run.plan.groups
        self._books = books
        self._snapshots = BookSnapshots(run.plan, run.books)
        self._telling = Telling(run.kept_directory, run.options.observer, logging_interval)

    def counts(self) -> list[StageCounts]:
        """What every stage has done so far, in all sessions."""
        return self._snapshots.counts(self._books.totals)

    def tell(self, *, state: str = "running", at_once: bool = False) -> None:
        """Tell whoever watches."""
        self._telling.tell(self.messages, lambda fresh: self._snapshot(state, fresh), at_once=at_once)

    def _snapshot(self, state: str, messages: list[str]) -> RunSnapshot:
        return self._snapshots.make(
            state,
            self._snapshots.counts(self._books.totals),
            self._stages(),
            memory_bytes=resident_bytes([os.getpid()]),  # that of the workers is the other engine's to know
            memory_limit=0,
            messages=messages,
        )

    def _stages(self) -> list[StageSnapshot]:
        return [
            StageSnapshot(
                name,
                group.index,
                workers=self.workers.get(group.index, 0),
                busy_workers=self.busy.get(group.index, 0),
                queued_tasks=max(0, self._books.queued(group.index) - self.busy.get(group.index, 0)),
            )
            for group in self._groups
            for name in group.names
        ]
