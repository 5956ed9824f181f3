"""Which neighbouring stages run in one process, handing tasks over as objects.

Moving a batch to another process costs a copy and a round trip, so neighbours are fused unless something speaks
against it: other resources or environment, another number of workers, a GPU (its memory was asked for by one stage), a
stage that batches tasks the group before it does not, a stage that must not be fused, or a source that streams one
large file: then the stages behind it can keep the other cores busy.
"""

from collections.abc import Sequence

from gristmill.engine.plan import AnyStage, AnyTask, Group
from gristmill.engine.uniting import belong_together
from gristmill.errors import ConfigError


def fuse(stages: Sequence[AnyStage], names: Sequence[str], sources: Sequence[AnyTask]) -> tuple[Group, ...]:
    """Cut the line of stages into groups."""
    cuts = [0]
    for index in range(1, len(stages)):
        streaming = index == 1 and any(stages[0].streams(task) for task in sources)
        if streaming or not belong_together(stages[index - 1], stages[index], stages[cuts[-1]]):
            cuts.append(index)
    ends = [*cuts[1:], len(stages)]
    return tuple(_group(n, stages, names, first, end) for n, (first, end) in enumerate(zip(cuts, ends, strict=True)))


def _group(number: int, stages: Sequence[AnyStage], names: Sequence[str], first: int, end: int) -> Group:
    members = tuple(stages[first:end])
    deadlines = [stage.deadline_s for stage in members if stage.deadline_s is not None]
    for stage, name in zip(members, names[first:end], strict=True):
        if stage.expected_s is not None and not stage.expected_s > 0:
            raise ConfigError(f"{name}: expected expected_s > 0; got {stage.expected_s!r}")
    expected = [stage.expected_s for stage in members if stage.expected_s is not None]
    return Group(
        index=number,
        stages=members,
        names=tuple(names[first:end]),
        first_stage=first,
        resources=members[0].resources,
        batch_size=members[0].tasks_a_call(),
        batch_items=members[0].batch_items,
        batch_bytes=members[0].batch_bytes,
        num_workers=members[0].num_workers(),
        deadline_s=sum(deadlines) if deadlines else None,
        expected_s=sum(expected) if len(expected) == len(members) else None,
        # A file is written once, whatever a writer says.
        may_run_twice=all(stage.may_run_twice and stage.output_directory() is None for stage in members),
        lanes=members[0].lanes,
        cancels=bool(deadlines) and all(stage.is_async for stage in members if stage.deadline_s is not None),
    )
