"""`View`: what a run that another engine schedules looks like, for those who watch it."""

import os
import time
from collections import Counter
from collections.abc import Iterator

from gristmill.backends.delegated.envelope import Receipt
from gristmill.backends.delegated.registrar import News
from gristmill.backends.delegated.root_books import RootBooks
from gristmill.engine.plan import Group
from gristmill.metrics.pace import Latency, Peaks
from gristmill.metrics.snapshot import RunSnapshot, StageCounts, StageSnapshot
from gristmill.runs.progress import BookSnapshots, Telling
from gristmill.runs.segment import Segment
from gristmill.worker.machine import resident_bytes


class View:
    """What is known of a run: receipts, and what the registrar hears of workers and machines."""

    def __init__(self, run: Segment, books: RootBooks, logging_interval: float | None) -> None:
        self.messages: list[str] = []
        self._news = News([], [], {}, {}, "")
        self._losses: Counter[int] = Counter()  # by group; the other engine does not say why
        self._progress_at: dict[int, float] = {}  # by group
        self._latencies = [Latency() for _ in run.plan.stage_names]
        self.peaks = Peaks()
        self._groups = run.plan.groups
        self._books = books
        self._snapshots = BookSnapshots(run.plan, run.books)
        self._telling = Telling(run.kept_directory, run.options.observer, logging_interval)

    def heard(self, news: News) -> None:
        """Take in what the registrar knows."""
        self._news = news
        self._losses.update(group for group, _ in news.lost)

    def progressed(self, receipt: Receipt) -> None:
        """A task is done in a group."""
        self._progress_at[receipt.group] = time.time()
        first = self._groups[receipt.group].first_stage
        for offset, counts in enumerate(receipt.counts):
            self._latencies[first + offset].add(counts.process_s)

    def counts(self) -> list[StageCounts]:
        """What every stage has done so far, in all sessions."""
        return self._snapshots.counts(self._books.totals)

    def tell(self, *, state: str = "running", at_once: bool = False) -> None:
        """Tell those who watch the run."""
        self._telling.tell(self.messages, lambda fresh: self._snapshot(state, fresh), at_once=at_once)

    def _snapshot(self, state: str, messages: list[str]) -> RunSnapshot:
        held = sum(together for _, together, _ in self._news.memory)
        made = self._snapshots.make(
            state,
            self._snapshots.counts(self._books.totals),
            self._stages(),
            memory_bytes=resident_bytes([os.getpid()]) + held,  # plus the most each worker has said it held
            memory_limit=0,
            messages=messages,
            nodes=self._news.nodes,
        )
        return self.peaks.seen(made)

    def _stages(self) -> list[StageSnapshot]:
        return [stage for group in self._groups for stage in self._stages_of(group)]

    def _stages_of(self, group: Group) -> Iterator[StageSnapshot]:
        index, news = group.index, self._news
        busy = news.busy.get(index, 0)
        together, largest = next((held[1:] for held in news.memory if held[0] == index), (0, 0))
        retries = {stage: number for of, stage, number in news.retries if of == index}
        for offset, name in enumerate(group.names):
            latency = self._latencies[group.first_stage + offset]
            unknown = retries.get("", 0) if offset == 0 else 0
            yield StageSnapshot(
                name,
                index,
                workers=news.workers.get(index, 0),
                busy_workers=busy,
                queued_tasks=max(0, self._books.queued(index) - busy),
                memory_bytes=together,
                largest_worker_bytes=largest,
                last_progress_at=self._progress_at.get(index),
                latency=tuple(latency.counts),
                latency_s=latency.sum_s,
                retries=retries.get(name, 0) + unknown,
                losses={"unknown": self._losses[index]} if self._losses[index] and not offset else {},
            )
