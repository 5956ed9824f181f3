"""`Plan`: what a pipeline compiles to. Frozen; made by `gristmill.pipeline`, read by engine and executors."""

from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from gristmill.stages.base import AnyStage, AnyTask, JoinedStages
from gristmill.stages.resources import Resources
from gristmill.tasks import FileGroupTask

# Which neighbouring stages of a group take tasks in one pass, because they are cheaper together than one by one.


def join_neighbours(stages: Sequence[AnyStage]) -> dict[int, tuple[int, JoinedStages]]:
    """Return, for the first of each row of stages that can be joined, how many they are and what replaces them."""
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


__all__ = ["AnyStage", "AnyTask", "Group", "Plan"]


class Group(msgspec.Struct, frozen=True, dict=True):
    """Neighbouring stages that run fused: one process, one call, no data moved between them."""

    index: int
    stages: tuple[AnyStage, ...]
    names: tuple[str, ...]
    first_stage: int  # position of the first of them among all stages of the plan
    resources: Resources
    batch_size: int
    num_workers: int | None  # fixed by the user, or None
    deadline_s: float | None
    expected_s: float | None = None  # what its stages say a task takes
    may_run_twice: bool = False  # whether a straggler may be copied
    batch_items: int | None = None  # in all tasks of one call together, unless it has only one
    batch_bytes: int | None = None
    lanes: int = 1  # calls a worker has under way at once
    cancels: bool = False  # whether a worker ends an overdue call itself, so that it need not be killed

    @cached_property
    def has_sized_batches(self) -> bool:
        """Whether a call is bounded by more than a number of tasks."""
        return self.batch_items is not None or self.batch_bytes is not None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]}…{self.names[-1]}"

    def position(self, stage: str) -> int:
        """Where in the group a stage is; a name that is none of theirs counts for the first."""
        return self.names.index(stage) if stage in self.names else 0


class Plan(msgspec.Struct, frozen=True, dict=True):
    """Everything about a run that is known before it starts."""

    name: str
    groups: tuple[Group, ...]
    sources: Sequence[AnyTask]  # one per source partition, in order; where there may be millions, made when asked for
    source_names: Sequence[str]  # unique; what is made from a partition is named after it
    source_stage: str | None  # the stage that listed them, which has thereby done its work
    fingerprint: str
    stage_configs: tuple[tuple[str, str], ...]  # (name, canonical configuration): what the fingerprint is made of
    input_bytes: int  # of all source partitions
    inputs: Sequence[tuple[str, int, str]]  # (path, size, version) of every input file
    output_directories: tuple[str, ...]
    ends_in_writer: bool
    input_directories: tuple[str, ...] = ()  # read as a whole: whatever is in them is input
    source_note: str = ""  # what the stage that listed the sources says of them
    listing: str = ""  # the configuration of a stage whose list of inputs is kept for later sessions of the run
    held: str = ""  # a hash of what initial tasks hold in memory; files are in `inputs`
    then: "Plan | None" = None  # what runs on this plan's output when all of it is done: an exchange lies between

    @property
    def segments(self) -> "tuple[Plan, ...]":
        """This plan and those behind its exchanges, in order; each begins when the one before is done."""
        return (self, *(() if self.then is None else self.then.segments))

    @cached_property
    def searches(self) -> bool:
        """Whether one of its stages has to look at all documents ahead of it, in runs of its own, before it begins."""
        return any(stage.searches for group in self.groups for stage in group.stages)

    @property
    def is_one_go(self) -> bool:
        """Whether a run of it starts workers only once, because it has neither an exchange nor a search."""
        return self.then is None and not self.searches

    @cached_property
    def stage_names(self) -> tuple[str, ...]:
        """All stages in order."""
        return tuple(name for group in self.groups for name in group.names)

    def describe(self) -> str:
        """What would run, as lines for people to read."""
        lines = [f"pipeline {self.name}", f"  input: {self._inputs()}"]
        if self.source_stage:
            note = f" ({self.source_note})" if self.source_note else ""
            lines.append(f"  {self.source_stage}: done while planning{note}")
        for group in self.groups:
            lines.append(f"  group {group.index}: {_shape(group)}")
            lines += _stage_lines(group)
        lines += [f"  output: {directory}" for directory in self.output_directories]
        lines.append(f"  fingerprint: {self.fingerprint}")
        if self.then is not None:
            lines += ["then, when all of that is done:", *self.then.describe().splitlines()[1:]]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same for notebooks: a row for each group of stages that share a process."""
        from gristmill.tasks.notebook_view import escaped  # runs start without it

        rows = [
            (f"{number + 1}.{group.index}" if self.then else str(group.index), _stage_lines(group), _shape(group))
            for number, segment in enumerate(self.segments)
            for group in segment.groups
        ]
        cells = "".join(
            f"<tr><td>{escaped(name)}</td><td>{_indented(stages, escaped)}</td><td>{escaped(needs)}</td></tr>"
            for name, stages, needs in rows
        )
        outputs = [f"writes to {directory}" for segment in self.segments for directory in segment.output_directories]
        below = "".join(f"<p>{escaped(line, 500)}</p>" for line in outputs)
        head = "<tr><th>group</th><th>stages</th><th>runs as</th></tr>"
        return (
            f"<p><b>{escaped(self.name)}</b>: {escaped(self._inputs(), 500)}</p>"
            f"<table><thead>{head}</thead><tbody>{cells}</tbody></table>{below}"
        )

    def _inputs(self) -> str:
        files = len(self.inputs)
        parts = f"{len(self.sources)} source partition{'s' * (len(self.sources) != 1)}"
        if not files:
            return parts
        is_told = all(size or "://" not in path for path, size, _ in self.inputs)
        size = f"{self.input_bytes:,} bytes" if is_told else "some of unknown size"
        return f"{parts} of {files} file{'s' * (files != 1)}, {size}"


def _stage_lines(group: Group) -> list[str]:
    notes = [f" ({note})" if (note := stage.plan_note()) else "" for stage in group.stages]
    lines = [f"    {name}{note}" for name, note in zip(group.names, notes, strict=True)]
    for first, (length, _) in join_neighbours(group.stages).items():
        lines[first : first + length] = [f"  {line}" for line in lines[first : first + length]]
        lines[first] = f"    {length} stages in one pass:\n{lines[first]}"
    return lines


def _indented(stages: Sequence[str], escaped: Callable[[str], str]) -> str:
    lines = [line for some in stages for line in some.split("\n")]
    return "<br>".join("&emsp;" * (len(line) - len(line.lstrip()) > 4) + escaped(line.strip()) for line in lines)


def _shape(group: Group) -> str:
    r = group.resources
    need = [f"{r.cpus:g} cpu"]
    need += [f"{r.gpus:g} gpu"] if r.gpus else []
    need += [f"{r.gpu_memory_gb:g} GB of gpu memory"] if r.gpu_memory_gb else []
    fused = f"{len(group.names)} stages fused, " if len(group.names) > 1 else ""
    batch = f", {group.batch_size} tasks a call" if group.batch_size > 1 else ""
    batch += f", {group.lanes} calls at once" if group.lanes > 1 else ""
    fixed = f", {group.num_workers} workers" if group.num_workers else ""
    return f"{fused}{' + '.join(need)} a worker{batch}{fixed}"


def is_file_source(task: AnyTask) -> bool:
    """Whether a source task names files, whose size and version then belong to the plan's inputs."""
    return isinstance(task, FileGroupTask)


# Which stages may run in one process, and which groups are merged for engines that cannot stream between them.
#
# A large file that cannot be split is streamed: its first group makes tasks for hours, and the groups behind take them
# as they come. An engine that hands on results only after a call would hold the whole file in memory; there the
# stages behind the reader run in its process, one task at a time.


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
        # Calls of a group with lanes overlap; those of a stage that did not ask for lanes must not.
        and before.lanes == after.lanes == 1
    )


def unite_streaming(plan: Plan) -> Plan:
    """Return the plan with the group that streams and the one behind it merged, if they can be."""
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
