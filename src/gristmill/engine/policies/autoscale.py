"""How many workers each group should have.

A group's load is the worker-seconds one source partition costs it: visits per partition times mean service time. On a
resource all groups share, throughput is highest when workers are in proportion to load. Until a group is measured it
keeps one worker, except that a resource only one group wants goes to it whole, at once. CPUs are compressible: every
group gets one worker even where that is more than there are cores. GPUs are not: who does not fit waits.
"""

from dataclasses import dataclass

MEASURED = 8  # completions before a rate is believed


@dataclass(frozen=True)
class GroupLoad:
    """One group as the policy sees it."""

    group: int
    cpus: float
    fixed: int | None  # the user's number
    finished: bool  # nothing queued or running here, and nothing more will come
    useful: int  # more workers than this cannot be used: tasks there are or will be
    completions: int
    load: float  # measured seconds per source partition; meaningless before MEASURED completions
    needs_gpu: bool


def targets(loads: list[GroupLoad], cpus: float) -> dict[int, int]:
    """Return the number of workers each group should have, before GPUs are placed."""
    wanted = {g.group: 0 if g.finished else max(1, g.fixed or 1) for g in loads}
    active = [g for g in loads if not g.finished]
    free = cpus - sum(wanted[g.group] * g.cpus for g in active)
    growing = [g for g in active if g.fixed is None]
    on_cpu = [g for g in growing if not g.needs_gpu]
    for g in growing:
        if g.needs_gpu:
            wanted[g.group] = max(1, g.useful)  # placement cuts this down to the GPUs there are
    if len(on_cpu) > 1 and any(g.completions < MEASURED for g in on_cpu):
        return wanted
    while True:
        candidates = [g for g in on_cpu if g.cpus <= free and wanted[g.group] < g.useful]
        if not candidates:
            return wanted
        # The one whose workers are most loaded; ties go downstream, where work leaves the system.
        most = max(candidates, key=lambda g: (g.load / wanted[g.group], g.group))
        wanted[most.group] += 1
        free -= most.cpus
