"""`RunTime`: where the time of a run went, from its snapshots and its report."""

from collections.abc import Mapping
from itertools import pairwise

import msgspec

from gristmill.dashboard.history_points import history_points
from gristmill.metrics.history import History
from gristmill.metrics.pace import BOUNDS, quantile
from gristmill.metrics.snapshot import RunSnapshot, StageCounts, StageSnapshot

CURVE_POINTS = 150  # of each curve in a report: as many as can be told apart on paper


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """How well the last session used what it had. `shares` are of the scarcest resource and add up to one."""

    makespan_s: float
    bound_s: float  # no schedule could have been faster
    of_bound: float
    resource: str
    shares: dict[str, float]


class StageTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage took: seconds over all sessions, the rest of the last one."""

    stage: str
    process_s: float
    documents_per_s: float  # of one worker
    tasks: int = 0
    p50_s: float | None = None  # of a task
    p95_s: float | None = None
    longest_s: float | None = None  # an upper bound, from the slots of `metrics/pace.py`; None if beyond the last
    retries: int = 0
    losses: dict[str, int] = {}  # workers that died, by cause
    recycles: int = 0
    peak_workers: int = 0
    peak_memory_bytes: int = 0  # of the workers of its group together
    peak_worker_bytes: int = 0  # of the largest


class NodeTime(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of the run, as it was last seen."""

    node: str
    cpus: int
    gpus: int
    memory_total_bytes: int


class Curves(msgspec.Struct, frozen=True, kw_only=True):
    """How the run went over time, over all sessions: one value for each of a few moments, None where none is known."""

    seconds: tuple[float, ...] = ()  # since the first moment
    read_per_s: tuple[float | None, ...] = ()
    memory_bytes: tuple[float | None, ...] = ()
    workers: dict[str, tuple[float | None, ...]] = {}  # by the first stage of each group


class RunTime(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about time."""

    wall_s: float = 0.0  # of the last session
    resumed: bool = False
    efficiency: Efficiency | None = None
    stages: tuple[StageTime, ...] = ()
    memory_limit: int = 0
    peak_memory_bytes: int = 0
    started_at: float = 0.0  # of the last session, in seconds since 1970; 0 if it is not known
    ended_at: float = 0.0
    nodes: tuple[NodeTime, ...] = ()
    sessions: int = 1
    curves: Curves = Curves()


def read_time(
    snapshot: RunSnapshot | None, report: Mapping[str, object], counts: Mapping[str, StageCounts], history: History
) -> RunTime:
    """Put together what the files of a run say about time."""
    wall = report.get("wall_s")
    seen = {stage.name: stage for stage in (snapshot.stages if snapshot else ())}
    return RunTime(
        wall_s=float(wall) if isinstance(wall, int | float) else snapshot.elapsed_s if snapshot else 0.0,
        resumed=bool(report.get("resumed")),
        efficiency=_efficiency(snapshot, report),
        stages=tuple(_stage_time(name, own, seen.get(name)) for name, own in counts.items()),
        memory_limit=snapshot.memory_limit if snapshot else 0,
        peak_memory_bytes=snapshot.peak_memory_bytes if snapshot else 0,
        started_at=snapshot.started_at if snapshot else 0.0,
        ended_at=snapshot.made_at if snapshot else 0.0,
        nodes=tuple(
            NodeTime(node=one.node, cpus=one.cpus, gpus=len(one.gpus), memory_total_bytes=one.memory_total_bytes)
            for one in (snapshot.nodes if snapshot else ())
        ),
        sessions=_sessions(history),
        curves=_curves(history),
    )


def _sessions(history: History) -> int:
    """A session counts its seconds from zero."""
    elapsed = [seconds for seconds in history.column("run", "", "elapsed_s") if seconds is not None]
    return 1 + sum(after < before for before, after in pairwise(elapsed))


def _curves(history: History) -> Curves:
    if not len(history):
        return Curves()
    points = history_points(history, CURVE_POINTS)
    start = history.times[0]
    return Curves(
        seconds=tuple(round(at - start, 1) for at in points.time),
        read_per_s=tuple(points.read_per_s),
        memory_bytes=tuple(points.memory_bytes),
        workers={name: tuple(values) for name, values in points.workers.items()},
    )


def _efficiency(snapshot: RunSnapshot | None, report: Mapping[str, object]) -> Efficiency | None:
    """As the report has it; of a run without one, as the last snapshot has it."""
    said = report.get("efficiency")
    if isinstance(said, dict):
        try:
            return msgspec.convert(said, Efficiency)
        except msgspec.ValidationError:
            return None
    if snapshot is None or not snapshot.bound_s or not snapshot.elapsed_s:
        return None
    return Efficiency(
        makespan_s=snapshot.elapsed_s,
        bound_s=snapshot.bound_s,
        of_bound=round(snapshot.bound_s / snapshot.elapsed_s, 4),
        resource=snapshot.resource,
        shares=dict(snapshot.shares),
    )


def _stage_time(name: str, counts: StageCounts, seen: StageSnapshot | None) -> StageTime:
    documents = counts.documents_in or counts.read
    speed = documents / counts.process_s if counts.process_s else 0.0
    seconds, speed = round(counts.process_s, 3), round(speed, 1)
    if seen is None:
        return StageTime(stage=name, process_s=seconds, documents_per_s=speed)
    slowest = max((slot for slot, number in enumerate(seen.latency) if number), default=None)
    return StageTime(
        stage=name,
        process_s=seconds,
        documents_per_s=speed,
        tasks=sum(seen.latency),
        p50_s=quantile(seen.latency, 0.5),
        p95_s=quantile(seen.latency, 0.95),
        longest_s=BOUNDS[slowest] if slowest is not None and slowest < len(BOUNDS) else None,
        retries=seen.retries,
        losses=dict(seen.losses),
        recycles=seen.recycles,
        peak_workers=seen.peak_workers,
        peak_memory_bytes=seen.peak_memory_bytes,
        peak_worker_bytes=seen.peak_worker_bytes,
    )
