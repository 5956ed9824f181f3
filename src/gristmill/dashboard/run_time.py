"""`RunTime`: where the time of a run went, from its snapshots and its report."""

from collections.abc import Mapping

import msgspec

from gristmill.metrics.snapshot import RunSnapshot, StageCounts


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """How well the last session used what it had. `shares` are of the scarcest resource and add up to one."""

    makespan_s: float
    bound_s: float  # no schedule could have been faster
    of_bound: float
    resource: str
    shares: dict[str, float]


class StageTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage took, over all sessions."""

    stage: str
    process_s: float
    documents_per_s: float  # of one worker


class RunTime(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about time."""

    wall_s: float = 0.0  # of the last session
    resumed: bool = False
    efficiency: Efficiency | None = None
    stages: tuple[StageTime, ...] = ()
    memory_limit: int = 0


def read_time(snapshot: RunSnapshot | None, report: Mapping[str, object], counts: Mapping[str, StageCounts]) -> RunTime:
    """Put together what the files of a run say about time."""
    wall = report.get("wall_s")
    return RunTime(
        wall_s=float(wall) if isinstance(wall, int | float) else snapshot.elapsed_s if snapshot else 0.0,
        resumed=bool(report.get("resumed")),
        efficiency=_efficiency(snapshot, report),
        stages=tuple(_stage_time(name, own) for name, own in counts.items()),
        memory_limit=snapshot.memory_limit if snapshot else 0,
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


def _stage_time(name: str, counts: StageCounts) -> StageTime:
    documents = counts.documents_in or counts.read
    speed = documents / counts.process_s if counts.process_s else 0.0
    return StageTime(stage=name, process_s=round(counts.process_s, 3), documents_per_s=round(speed, 1))
