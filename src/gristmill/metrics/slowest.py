"""Which stage a run waits for, in words."""

from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot

BUSY_SHARE = 0.5  # of its workers: with fewer at work a group is not what a run waits for


def slowest(snapshot: RunSnapshot) -> str:
    """The stage that decides how fast a run goes, and how that shows; "" if it cannot be told.

    Of the groups whose workers are busy it is the one with most work waiting; of its stages the one that takes longest.
    """
    groups: dict[int, list[StageSnapshot]] = {}
    for stage in snapshot.stages:
        groups.setdefault(stage.group, []).append(stage)
    busy = [stages for stages in groups.values() if _share(stages[0]) >= BUSY_SHARE]
    if not busy:
        return ""
    stages = max(busy, key=lambda stages: (stages[0].queue_s, _share(stages[0]), sum(s.process_s for s in stages)))
    worst, total = max(stages, key=lambda stage: stage.process_s), sum(stage.process_s for stage in stages)
    first = stages[0]
    part = f" takes {worst.process_s / total:.0%} of the time of its workers," if len(stages) > 1 and total else ":"
    waiting = f", {first.queue_s:.0f} s of work waiting" if first.queue_s >= 1 else ""
    return f"slowest: {worst.name}{part} {first.busy_workers} of {first.workers} busy{waiting}"


def _share(stage: StageSnapshot) -> float:
    return stage.busy_workers / stage.workers if stage.workers else 0.0
