"""Makes snapshots of a run from the scheduler's state."""

import copy
import time

from gristmill.backends.books import Books
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot
from gristmill.metrics.stage_counts import StageCounts


class SnapshotMaker:
    """Remembers when the run began and what earlier sessions did."""

    def __init__(self, plan: Plan, scheduler: Scheduler, books: Books, memory_limit: int) -> None:
        self.messages_told = 0
        self._plan = plan
        self._scheduler = scheduler
        self._started = time.monotonic()
        self._earlier = {name: copy.deepcopy(counts) for name, counts in books.totals.items()}
        self._partitions_before = len(books.records)
        self._bytes_before = books.input_bytes_done
        self._books = books
        self._memory_limit = memory_limit

    def make(self, state: str, memory_bytes: int, messages: list[str]) -> RunSnapshot:
        stages = self._stages()
        counts = [self._count(i, name) for i, name in enumerate(self._plan.stage_names)]
        elapsed = time.monotonic() - self._started
        total = self._plan.input_bytes
        done_here = self._books.input_bytes_done - self._bytes_before
        left = total - self._bytes_before - done_here
        efficiency = self._scheduler.account.efficiency(self._scheduler.groups, self._scheduler.now)
        return RunSnapshot(
            name=self._plan.name,
            state=state,
            elapsed_s=elapsed,
            partitions_done=len(self._books.records),
            partitions_total=len(self._plan.sources),
            read=sum(c.read for c in counts),
            written=sum(c.written for c in counts),
            dropped=sum(c.dropped_total for c in counts),
            quarantined=sum(c.quarantined for c in counts),
            created=sum(c.created for c in counts),
            input_bytes_done=self._bytes_before + done_here,
            input_bytes_total=total,
            memory_bytes=memory_bytes,
            memory_limit=self._memory_limit,
            eta_s=elapsed * left / done_here if done_here else None,
            stages=stages,
            bound_s=efficiency.bound_s,
            resource=efficiency.resource,
            shares=efficiency.shares,
            messages=tuple(messages),
        )

    def _count(self, index: int, name: str) -> StageCounts:
        both = StageCounts()
        both.add(self._earlier[name])
        both.add(self._scheduler.totals[index])
        return both

    def _stages(self) -> tuple[StageSnapshot, ...]:
        snapshots = []
        for group in self._scheduler.groups:
            memory = sum(worker.rss_bytes for worker in group.workers.values())
            for offset, name in enumerate(group.plan.names):
                counts = self._count(group.plan.first_stage + offset, name)
                snapshots.append(
                    StageSnapshot(
                        name=name,
                        group=group.plan.index,
                        workers=len(group.workers),
                        busy_workers=group.crew.num_busy,
                        queued_tasks=len(group.queue),
                        queue_s=group.backlog_s(),
                        memory_bytes=memory,
                    ).with_counts(counts)
                )
        return tuple(snapshots)
