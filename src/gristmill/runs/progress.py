"""How a run is doing: snapshots of it, who is told and how often, and what it measured of its stages.

Snapshots come from the books everywhere, and from the scheduler's state where there is one. What was measured is in
`measured.json`, for `gristmill simulate`: times of the session that ended the run, from which no decision is made.
"""

import copy
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from gristmill.engine.events import NodeJoined
from gristmill.engine.plan import Plan
from gristmill.engine.scheduler import Scheduler
from gristmill.engine.state import GroupRecord, WorkerState
from gristmill.metrics.history_writer import LEAST_S, HistoryWriter
from gristmill.metrics.node_sample import NodeSample
from gristmill.metrics.pace import Estimate, Eta, Peaks
from gristmill.metrics.snapshot import SNAPSHOT_S, WORKER_STATES, RunSnapshot, StageCounts, StageSnapshot
from gristmill.runs.books import Books, RunResult
from gristmill.runs.directory import RunDirectory
from gristmill.runs.user import Observer

STATUS_S = 1.0  # between two writings of the status file


class BookSnapshots:
    """What can be said about a run on any executor. Remembers when it began and what earlier sessions did."""

    def __init__(self, plan: Plan, books: Books) -> None:
        self._plan = plan
        self._books = books
        self._started = time.monotonic()
        self._started_at = time.time()
        self._eta = Eta()
        self._earlier = [copy.deepcopy(books.totals[name]) for name in plan.stage_names]
        self._bytes_before = books.input_bytes_done
        self._partitions_before = len(books.records)

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
        nodes: Sequence[NodeSample] = (),
        longest_s: float = 0.0,
    ) -> RunSnapshot:
        """Return how the run is doing now. `stages` say what works; what was done is added from `counts`.

        `longest_s` is the longest way of a partition through the run so far, where it is known.
        """
        elapsed = time.monotonic() - self._started
        done = self._books.input_bytes_done
        total = self._plan.input_bytes
        left = self._left(elapsed, longest_s)
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
            eta_s=None if left is None else left.left_s,
            eta_low_s=None if left is None else left.low_s,
            eta_high_s=None if left is None else left.high_s,
            stages=tuple(stage.with_counts(own) for stage, own in zip(stages, counts, strict=True)),
            messages=tuple(messages),
            made_at=time.time(),
            started_at=self._started_at,
            fingerprint=self._plan.fingerprint,
            nodes=tuple(nodes),
        )

    def _left(self, elapsed_s: float, longest_s: float) -> Estimate | None:
        """How long the rest takes. Where the size of the input is unknown, partitions are counted."""
        done, total = self._books.input_bytes_done - self._bytes_before, self._plan.input_bytes - self._bytes_before
        if total <= 0:
            done, total = len(self._books.records) - self._partitions_before, len(self._plan.sources)
            total -= self._partitions_before
        self._eta.add(elapsed_s, done)
        return self._eta.estimate(elapsed_s, total - done, longest_s)


class SnapshotMaker:
    """Snapshots of a run under gristmill's own scheduler."""

    def __init__(self, plan: Plan, scheduler: Scheduler, books: Books, memory_limit: int) -> None:
        self._books = BookSnapshots(plan, books)
        self._scheduler = scheduler
        self._memory_limit = memory_limit
        self._peaks = Peaks()

    def make(self, state: str, memory_bytes: int, messages: list[str], nodes: Sequence[NodeSample] = ()) -> RunSnapshot:
        scheduler = self._scheduler
        efficiency = scheduler.account.efficiency(scheduler.groups, scheduler.now)
        snapshot = self._books.make(
            state,
            self._books.counts(scheduler.totals),
            self._stages(),
            memory_bytes=memory_bytes,
            memory_limit=self._memory_limit,
            messages=messages,
            nodes=nodes,
            longest_s=scheduler.account.longest_path_s,
        )
        return self._peaks.seen(
            msgspec.structs.replace(
                snapshot,
                bound_s=efficiency.bound_s,
                resource=efficiency.resource,
                shares=efficiency.shares,
                resource_seconds=scheduler.account.resource_seconds(scheduler.groups, scheduler.now),
                data_in_flight_bytes=scheduler.memory.held_total,
                data_limit_bytes=scheduler.memory.limit,
            )
        )

    @property
    def peak_memory_bytes(self) -> int:
        """The most memory seen so far."""
        return self._peaks.memory_bytes

    def _stages(self) -> list[StageSnapshot]:
        since_1970 = time.time() - time.monotonic()  # the scheduler's clock, the driver's, has another origin
        return [stage for group in self._scheduler.groups for stage in _stages_of(group, since_1970)]


def _stages_of(group: GroupRecord, clock: float) -> Iterator[StageSnapshot]:
    """One group, with everything about it that is not in the books of its stages."""
    book = group.book
    shared = StageSnapshot(
        "",
        group.plan.index,
        workers=len(group.workers),
        busy_workers=group.crew.num_busy,
        queued_tasks=len(group.queue),
        queue_s=group.backlog_s(),
        memory_bytes=sum(worker.rss_bytes for worker in group.workers.values()),
        worker_states=_worker_states(group),
        largest_worker_bytes=max((worker.rss_bytes for worker in group.workers.values()), default=0),
        last_progress_at=None if group.progress_at is None else group.progress_at + clock,
        peak_workers=book.most_workers,
        peak_worker_bytes=book.most_rss_bytes,
    )
    for offset, name in enumerate(group.plan.names):
        yield msgspec.structs.replace(
            shared,
            name=name,
            latency=tuple(book.latencies[offset].counts),
            latency_s=book.latencies[offset].sum_s,
            retries=book.retries.get(offset, 0),
            losses={kind: number for (stage, kind), number in book.losses.items() if stage == offset},
            recycles=0 if offset else book.recycles,
        )


def _worker_states(group: GroupRecord) -> dict[str, int]:
    """Workers by what they do, as the run's account sees it: one idle while tasks wait counts as held back."""
    found = dict.fromkeys(WORKER_STATES, 0)
    unused = "blocked" if group.queue else "idle"
    for worker in group.workers.values():
        if worker.state is WorkerState.STARTING:
            found["starting"] += 1
        elif worker.state is WorkerState.DRAINING:
            found["draining"] += 1
        elif not worker.is_busy:
            found[unused] += 1
        else:
            found["blocked" if worker.is_stalled else "busy"] += 1
    return found


class Earlier:
    """What was last seen of the segments of a run that are over in this session: its stages, seconds and peaks."""

    def __init__(self) -> None:
        self.stages: dict[str, StageSnapshot] = {}
        self.peaks = Peaks()
        self._seconds: dict[int, dict[str, dict[str, float]]] = {}  # by segment
        self._bounds: dict[int, float] = {}
        self.started_at: float | None = None
        self.history = HistoryWriter()

    def joined(self, snapshot: RunSnapshot, segment: int) -> RunSnapshot:
        """Take in a snapshot of one segment; return it with the seconds of all of them, and the peaks."""
        self.stages.update({stage.name: stage for stage in snapshot.stages})
        self._seconds[segment], self._bounds[segment] = snapshot.resource_seconds, snapshot.bound_s
        self.started_at = self.started_at or snapshot.started_at
        total: dict[str, dict[str, float]] = {}
        for seconds in self._seconds.values():
            for resource, shares in seconds.items():
                mine = total.setdefault(resource, {})
                for share, value in shares.items():
                    mine[share] = mine.get(share, 0.0) + value
        scarce = total.get(snapshot.resource, {})
        return msgspec.structs.replace(
            snapshot,
            shares={share: value / sum(scarce.values()) for share, value in scarce.items()} or snapshot.shares,
            resource_seconds=total,
            bound_s=sum(self._bounds.values()),  # nothing of a segment starts before the one before it is over
            started_at=self.started_at,
        )


class JoinedSnapshots:
    """Shows snapshots of one segment as snapshots of the whole run, and keeps its status file."""

    def __init__(
        self,
        directory: RunDirectory,
        plans: Sequence[Plan],
        before: Sequence[RunResult],
        observer: Observer | None,
        began: float,
        earlier: Earlier,
    ) -> None:
        self.directory = directory
        self.plans = plans
        self.before = before
        self.observer = observer
        self.began = began
        self.earlier = earlier
        self._last_status = 0.0

    @property
    def snapshot_s(self) -> float:
        """How often a snapshot is wanted: for the status file, or more often if the observer wants it."""
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
            self.earlier.joined(snapshot, number),
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
            eta_low_s=snapshot.eta_low_s if is_last else None,
            eta_high_s=snapshot.eta_high_s if is_last else None,
            stages=tuple(self._stage(stage, now) for stage in stages),
        )
        joined = self.earlier.peaks.seen(joined)
        if self.observer is not None:
            self.observer(joined)
        if joined.elapsed_s - self._last_status >= STATUS_S or joined.state != "running":
            self._last_status = joined.elapsed_s
            self.directory.write_status(joined)
        if self.earlier.history.is_due(joined.elapsed_s) or joined.state != "running":
            self.directory.append_history(self.earlier.history.lines(joined))

    def _stage(self, stage: StageSnapshot, now: dict[str, StageSnapshot]) -> StageSnapshot:
        if stage.name in now:
            return msgspec.structs.replace(now[stage.name], group=stage.group)
        if stage.name in self.earlier.stages:  # of a segment that is over: its last snapshot had everything
            return msgspec.structs.replace(self.earlier.stages[stage.name], group=stage.group)
        for result in self.before:
            if stage.name in result.counts:
                return stage.with_counts(result.counts[stage.name])
        return stage


COST_SHARE = 0.01  # of the time: on a busy machine the memory of many processes takes long to add up
MOST_S = 2.0  # but on a large machine too the user wants to see signs of life


class Telling:
    """Remembers who was told when. `directory` is None for a run that leaves none."""

    def __init__(
        self,
        directory: RunDirectory | None,
        observer: Callable[[RunSnapshot], None] | None,
        logging_interval: float | None,
    ) -> None:
        self._directory = directory
        self._observer = observer
        self._history = HistoryWriter(logging_interval)
        self._history_s = LEAST_S if logging_interval is None else logging_interval
        # At first there is nothing to see yet, and workers have to be started; many runs are over before this.
        self._words_at = self._snapshot_at = time.monotonic() + SNAPSHOT_S
        self._every_s: float | None = None  # asked once workers are starting, because answering loads a display
        self._last_status = 0.0
        self._messages_told = 0

    def tell(self, messages: list[str], make: Callable[[list[str]], RunSnapshot], *, at_once: bool = False) -> None:
        """Tell those who are due. `make` gets the messages not told yet; it is called only if somebody listens."""
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
        if at_once or self._history.is_due(snapshot.elapsed_s):
            self._directory.append_history(self._history.lines(snapshot))

    def _is_due(self, now: float, num_messages: int) -> bool:
        if self._every_s is None:
            self._snapshot_at += self._wanted_s() - SNAPSHOT_S
        if num_messages > self._messages_told:
            return not self._messages_told or now >= self._words_at
        return now >= self._snapshot_at

    def _wanted_s(self) -> float:
        """How often a snapshot is wanted, apart from messages."""
        if self._every_s is None:
            wanted = [] if self._observer is None else [getattr(self._observer, "snapshot_s", SNAPSHOT_S)]
            wanted += [] if self._directory is None else [min(STATUS_S, self._history_s)]
            self._every_s = min(wanted, default=STATUS_S)
        return self._every_s


class MeasuredGroup(msgspec.Struct, frozen=True):
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
    dispatch_s: float  # for every task, the time a worker with tasks worked on none
    fan_out: float
    output_bytes: float  # of one output
    lanes: int = 1  # tasks a worker had under way at once, each for `service_s`


class MeasuredRun(msgspec.Struct, frozen=True):
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
    """Write down what the scheduler knows at the end of a run on one machine."""
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
