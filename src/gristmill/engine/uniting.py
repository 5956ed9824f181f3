"""Which stages may run in one process, and groups that are made one for engines that cannot stream between them.

A large file that cannot be split is streamed: its first group makes tasks for hours, and the groups behind take them as
they come. An engine that hands on results when a call has ended would hold the whole file in memory; there the stages
behind the reader run in its process, one task at a time.
"""

from dataclasses import replace

from gristmill.engine.plan import AnyStage, Group, Plan


def belong_together(before: AnyStage, after: AnyStage, first: AnyStage) -> bool:
    """Whether a stage can run in the process of the one before it, in a group that begins with `first`."""
    return (
        before.fusible
        and after.fusible
        and before.resources == after.resources
        and not after.resources.requires_gpu
        and before.runtime_env == after.runtime_env
        and before.num_workers() == after.num_workers()
        and after.tasks_a_call() in (1, first.tasks_a_call())
        and (after.batch_items, after.batch_bytes) in ((None, None), (first.batch_items, first.batch_bytes))
        # Calls of a group with lanes overlap, and those of a stage that said nothing of it must not.
        and before.lanes == after.lanes == 1
    )


def unite_streaming(plan: Plan) -> Plan:
    """Return the plan with the group that streams and the one behind it made one, if they can be."""
    if len(plan.groups) < 2:
        return plan
    reading, behind, *rest = plan.groups
    streams = any(reading.stages[-1].streams(task) for task in plan.sources)
    if not streams or not belong_together(reading.stages[-1], behind.stages[0], reading.stages[0]):
        return plan
    groups = (_united(reading, behind), *(replace(group, index=group.index - 1) for group in rest))
    return replace(plan, groups=groups)


def _united(first: Group, second: Group) -> Group:
    deadlines = [group.deadline_s for group in (first, second) if group.deadline_s is not None]
    expected = [group.expected_s for group in (first, second) if group.expected_s is not None]
    return replace(
        first,
        stages=(*first.stages, *second.stages),
        names=(*first.names, *second.names),
        deadline_s=sum(deadlines) if deadlines else None,
        expected_s=sum(expected) if len(expected) == 2 else None,
        may_run_twice=first.may_run_twice and second.may_run_twice,
    )
