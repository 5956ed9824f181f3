"""Which neighbouring stages of a group take tasks in one pass, because they are cheaper together than one by one."""

from collections.abc import Sequence

from gristmill.stages.base import AnyStage, JoinedStages


def join_neighbours(stages: Sequence[AnyStage]) -> dict[int, tuple[int, JoinedStages]]:
    """Return, for the first stage of each run that can be joined, how long the run is and what takes its place."""
    found: dict[int, tuple[int, JoinedStages]] = {}
    first = 0
    while first < len(stages):
        length = 1
        while first + length < len(stages) and _joined(stages[first : first + length + 1]) is not None:
            length += 1
        joined = _joined(stages[first : first + length]) if length > 1 else None
        if joined is not None:
            found[first] = (length, joined)
        first += length
    return found


def _joined(stages: Sequence[AnyStage]) -> JoinedStages | None:
    if any(stage.tasks_a_call() != 1 for stage in stages):
        return None  # several tasks a call: that is the stage's own way of being cheaper
    return stages[0].joined_with(stages[1:])
