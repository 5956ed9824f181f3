"""`Telling`: whoever watches a run is told how it is, each as often as it wants: observer, status file, log."""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from gristmill.engine.events import NodeJoined
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.state import GroupRecord
from gristmill.metrics.snapshot import SNAPSHOT_S, RunSnapshot, StageCounts, StageSnapshot
from gristmill.runs.books import Books, RunResult
from gristmill.runs.directory import RunDirectory
from gristmill.runs.user import Observer

# What a run measured of its machines and stages: `measured.json` in its directory, for `gristmill simulate`.
#
# Times are of the session that ended the run; what an earlier session committed is not in them. No decision is made
# from this file: the scheduler measures anew in every run.


@dataclass(frozen=True)
class MeasuredGroup:
    """One group of stages: what a worker of it occupies, and what a task of it was like on average."""

    name: str
    cpus: float
    gpus: float
    gpu_memory_gb: float
    batch_size: int
    num_workers: int | None  # fixed by the user
    tasks: int
    service_s: float
    sigma: float  # of the log-normal distribution that varies as much
    setup_s: float  # from the command to start a worker until it is ready
    dispatch_s: float  # that a worker with tasks worked on none, for every task
    fan_out: float
    output_bytes: float  # of one output
    lanes: int = 1  # tasks a worker had under way at once, each for `service_s`


@dataclass(frozen=True)
class MeasuredRun:
    """A whole run."""

    name: str
    cpus: float
    gpu_memory_gb: tuple[float, ...]
    memory_bytes: int
    rescale_interval_s: float
    source_bytes: float  # of one source partition
    groups: tuple[MeasuredGroup, ...]
    makespan_s: float
    bound_s: float
    resource: str
    shares: dict[str, float]


def measure(name: str, scheduler: Scheduler, node: NodeJoined, *, source_bytes: float) -> MeasuredRun:
    """Take down what the scheduler knows at the end of a run on one machine."""
    efficiency = scheduler.account.efficiency(scheduler.groups, scheduler.now)
    return MeasuredRun(
        name=name,
        cpus=node.cpus,
        gpu_memory_gb=node.gpu_memory_gb,
        memory_bytes=node.memory_bytes,
        rescale_interval_s=scheduler.config.rescale_interval_s,
        source_bytes=source_bytes,
        groups=tuple(_group(group) for group in scheduler.groups),
        makespan_s=efficiency.makespan_s,
        bound_s=efficiency.bound_s,
        resource=efficiency.resource,
        shares=efficiency.shares,
    )


def _group(group: GroupRecord) -> MeasuredGroup:
    book, plan = group.book, group.plan
    tasks = max(1, book.tasks)
    return MeasuredGroup(
        name=plan.name,
        cpus=plan.resources.cpus,
        gpus=plan.resources.gpus,
        gpu_memory_gb=plan.resources.gpu_memory_gb,
        batch_size=plan.batch_size,
        num_workers=plan.num_workers,
        tasks=book.tasks,
        service_s=book.useful_s * plan.lanes / tasks,
        sigma=book.sigma(),
        setup_s=book.setup_s / max(1, book.starts),
        dispatch_s=book.split()["scheduler"] / tasks,
        fan_out=book.outputs / tasks,
        output_bytes=book.output_bytes / max(1, book.outputs),
        lanes=plan.lanes,
    )


# Makes snapshots of a run: from the books everywhere, and from the scheduler's state where there is one.


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
        return msgspec.structs.replace(
            snapshot, bound_s=efficiency.bound_s, resource=efficiency.resource, shares=efficiency.shares
        )

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
        joined = msgspec.structs.replace(
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
            return msgspec.structs.replace(now[stage.name], group=stage.group)
        for result in self.before:
            if stage.name in result.counts:
                return stage.with_counts(result.counts[stage.name])
        return stage


STATUS_S = 1.0
COST_SHARE = 0.01  # of the time: on a busy machine the memory of many processes takes long to add up
MOST_S = 2.0  # but whoever watches a large machine wants to see that it is alive


class Telling:
    """Remembers who was told when. `directory` is None for a run that leaves none."""

    def __init__(
        self,
        directory: RunDirectory | None,
        observer: Callable[[RunSnapshot], None] | None,
        logging_interval: float,
    ) -> None:
        self._directory = directory
        self._observer = observer
        self._logging_interval = logging_interval
        # At the start there is nothing to see yet, and workers that want to be started; many runs are over by then.
        self._words_at = self._snapshot_at = time.monotonic() + SNAPSHOT_S
        self._every_s: float | None = None  # asked when workers are starting: to answer, a display has to be loaded
        self._last_status = 0.0
        self._last_log = time.monotonic()
        self._messages_told = 0

    def tell(self, messages: list[str], make: Callable[[list[str]], RunSnapshot], *, at_once: bool = False) -> None:
        """Tell who is due. `make` gets the messages nobody has heard yet, and is called only if somebody listens."""
        now = time.monotonic()
        if self._observer is None and self._directory is None:
            return
        if not at_once and not self._is_due(now, len(messages)):
            return
        snapshot = make(messages[self._messages_told :])
        made = time.monotonic()
        self._words_at = max(now + SNAPSHOT_S, made + min(MOST_S, (made - now) / COST_SHARE))
        self._snapshot_at = max(now + self._wanted_s(), self._words_at)
        self._messages_told = len(messages)
        if self._observer is not None:
            self._observer(snapshot)
        if self._directory is None:
            return
        if at_once or now - self._last_status >= STATUS_S:
            self._last_status = now
            self._directory.write_status(snapshot)
        if at_once or now - self._last_log >= self._logging_interval:
            self._last_log = now
            self._directory.log_metrics(snapshot)

    def _is_due(self, now: float, num_messages: int) -> bool:
        if self._every_s is None:
            self._snapshot_at += self._wanted_s() - SNAPSHOT_S
        if num_messages > self._messages_told:
            return not self._messages_told or now >= self._words_at
        return now >= self._snapshot_at

    def _wanted_s(self) -> float:
        """How often somebody wants to know, words apart."""
        if self._every_s is None:
            wanted = [] if self._observer is None else [getattr(self._observer, "snapshot_s", SNAPSHOT_S)]
            wanted += [] if self._directory is None else [min(STATUS_S, self._logging_interval)]
            self._every_s = min(wanted, default=STATUS_S)
        return self._every_s
