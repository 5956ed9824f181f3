"""Makes snapshots of a run: from the books everywhere, and from the scheduler's state where there is one."""

import copy
import time
from collections.abc import Sequence
from dataclasses import replace

from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.metrics.snapshot import SNAPSHOT_S, RunSnapshot, StageSnapshot
from gristmill.metrics.stage_counts import StageCounts
from gristmill.runs.books import Books
from gristmill.runs.directory import RunDirectory
from gristmill.runs.options import Observer
from gristmill.runs.result import RunResult
from gristmill.runs.telling import STATUS_S


class BookSnapshots:
    """What can be said about a run on any executor. Remembers when it began and what earlier sessions did."""

    def __init__(self, plan: Plan, books: Books) -> None:
        self._plan = plan
        self._books = books
        self._started = time.monotonic()
        self._earlier = [copy.deepcopy(books.totals[name]) for name in plan.stage_names]
        self._bytes_before = books.input_bytes_done

    def counts(self, here: Sequence[StageCounts]) -> list[StageCounts]:
        """What every stage has done in all sessions, from what it has done in this one."""
        both = copy.deepcopy(self._earlier)
        for counts, own in zip(both, here, strict=True):
            counts.add(own)
        return both

    def make(
        self,
        state: str,
        counts: Sequence[StageCounts],
        stages: Sequence[StageSnapshot],
        *,
        memory_bytes: int,
        memory_limit: int,
        messages: Sequence[str],
    ) -> RunSnapshot:
        """Return how the run is now. `stages` say who works; what was done is added from `counts`."""
        elapsed = time.monotonic() - self._started
        done = self._books.input_bytes_done
        total = self._plan.input_bytes
        done_here = done - self._bytes_before
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
            input_bytes_done=done,
            input_bytes_total=total,
            memory_bytes=memory_bytes,
            memory_limit=memory_limit,
            eta_s=elapsed * (total - done) / done_here if done_here else None,
            stages=tuple(stage.with_counts(own) for stage, own in zip(stages, counts, strict=True)),
            messages=tuple(messages),
        )


class SnapshotMaker:
    """Snapshots of a run under gristmill's own scheduler."""

    def __init__(self, plan: Plan, scheduler: Scheduler, books: Books, memory_limit: int) -> None:
        self._books = BookSnapshots(plan, books)
        self._scheduler = scheduler
        self._memory_limit = memory_limit

    def make(self, state: str, memory_bytes: int, messages: list[str]) -> RunSnapshot:
        efficiency = self._scheduler.account.efficiency(self._scheduler.groups, self._scheduler.now)
        snapshot = self._books.make(
            state,
            self._books.counts(self._scheduler.totals),
            self._stages(),
            memory_bytes=memory_bytes,
            memory_limit=self._memory_limit,
            messages=messages,
        )
        return replace(snapshot, bound_s=efficiency.bound_s, resource=efficiency.resource, shares=efficiency.shares)

    def _stages(self) -> list[StageSnapshot]:
        return [
            StageSnapshot(
                name=name,
                group=group.plan.index,
                workers=len(group.workers),
                busy_workers=group.crew.num_busy,
                queued_tasks=len(group.queue),
                queue_s=group.backlog_s(),
                memory_bytes=sum(worker.rss_bytes for worker in group.workers.values()),
            )
            for group in self._scheduler.groups
            for name in group.plan.names
        ]


class JoinedSnapshots:
    """Shows snapshots of one segment as snapshots of the whole run, and keeps its status file."""

    def __init__(
        self,
        directory: RunDirectory,
        plans: Sequence[Plan],
        before: Sequence[RunResult],
        observer: Observer | None,
        began: float,
    ) -> None:
        self.directory = directory
        self.plans = plans
        self.before = before
        self.observer = observer
        self.began = began
        self._last_status = 0.0

    @property
    def snapshot_s(self) -> float:
        """How often a snapshot is wanted: for the status file, or oftener by whoever watches."""
        return STATUS_S if self.observer is None else min(STATUS_S, getattr(self.observer, "snapshot_s", SNAPSHOT_S))

    def __call__(self, snapshot: RunSnapshot) -> None:
        number, total = len(self.before), len(self.plans)
        is_last = number == total - 1
        done = [count for result in self.before for count in result.counts.values()]
        stages = [
            StageSnapshot(name, group.index + 100 * position)
            for position, plan in enumerate(self.plans)
            for group in plan.groups
            for name in group.names
        ]
        now = {stage.name: stage for stage in snapshot.stages}
        joined = replace(
            snapshot,
            state=snapshot.state if is_last or snapshot.state != "finished" else "running",
            elapsed_s=time.monotonic() - self.began,
            partitions_done=snapshot.partitions_done + sum(len(plan.sources) for plan in self.plans[:number]),
            partitions_total=sum(len(plan.sources) for plan in self.plans),
            read=self.before[0].read if self.before else snapshot.read,
            written=snapshot.written if is_last else 0,
            dropped=snapshot.dropped + sum(count.dropped_total for count in done),
            quarantined=snapshot.quarantined + sum(count.quarantined for count in done),
            created=snapshot.created + sum(count.created for count in done),
            eta_s=snapshot.eta_s if is_last else None,
            stages=tuple(self._stage(stage, now) for stage in stages),
        )
        if self.observer is not None:
            self.observer(joined)
        if joined.elapsed_s - self._last_status >= STATUS_S or joined.state != "running":
            self._last_status = joined.elapsed_s
            self.directory.write_status(joined)

    def _stage(self, stage: StageSnapshot, now: dict[str, StageSnapshot]) -> StageSnapshot:
        if stage.name in now:
            return replace(now[stage.name], group=stage.group)
        for result in self.before:
            if stage.name in result.counts:
                return stage.with_counts(result.counts[stage.name])
        return stage
