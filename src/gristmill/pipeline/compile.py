"""Pipeline to plan: decompose, list the inputs, check, fuse, fingerprint. Whatever can be wrong is said here."""

import inspect
from collections.abc import Sequence
from itertools import chain

import msgspec

from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError
from gristmill.pipeline.fingerprint import contents, fingerprint, stage_config
from gristmill.pipeline.fusion import fuse
from gristmill.runs.places import check_outputs
from gristmill.secrets import has_secrets, remember_those_of, without_url_secrets
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.io.partitions import FilePartitions
from gristmill.tasks import EmptyTask, FileGroupTask, Task


class Sources(msgspec.Struct, frozen=True):
    """The beginning of a line of stages: tasks that were given, or partitions its first stage has listed."""

    tasks: Sequence[AnyTask]
    names: Sequence[str]  # of the partitions
    inputs: Sequence[tuple[str, int, str]]  # (path, size, version) of every file
    num_bytes: int
    stage: str | None = None  # the stage that listed them, which has thereby done its work
    directories: tuple[str, ...] = ()  # that it reads as a whole

    @classmethod
    def of(cls, tasks: Sequence[AnyTask], stage: str | None = None, directories: Sequence[str] = ()) -> "Sources":
        """Return the sources that tasks are. A list of files is not looked through: there may be a million."""
        if isinstance(tasks, FilePartitions):
            return cls(tasks, tasks.names, tasks.files, tasks.nbytes, stage, tuple(directories))
        files = {
            part.path: (part.path, part.file_size, part.version)
            for task in tasks
            if isinstance(task, FileGroupTask)
            for part in task.parts()
        }
        names = tuple(_source_name(index, task) for index, task in enumerate(tasks))
        num_bytes = sum(task.nbytes for task in tasks)
        return cls(tuple(tasks), names, tuple(files.values()), num_bytes, stage, tuple(directories))


def take_sources(
    pipeline: str, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None
) -> tuple[Sources, list[AnyStage]]:
    """Return the source tasks of a pipeline, and the stages they go through. The input is listed here, once a run."""
    if initial_tasks is not None:
        for task in initial_tasks:
            if not isinstance(task, Task):
                raise ConfigError(f"initial_tasks: expected tasks; got {task!r:.200}")
        return Sources.of(initial_tasks), list(stages)
    listed = stages[0].partitions()
    if listed is None:
        return Sources.of([EmptyTask()]), list(stages)
    if len(stages) == 1:
        who = stages[0].stage_name()
        raise ConfigError(f"pipeline {pipeline!r}: expected a stage behind {who!r}; it only lists what to read")
    return Sources.of(listed, stages[0].stage_name(), stages[0].input_directories()), list(stages[1:])


def compile_plan(name: str, stages: Sequence[AnyStage], sources: Sources) -> Plan:
    """Return the plan of stages without an exchange; they are copied, never changed."""
    copies = [stage.with_() for stage in stages]
    for stage in copies:
        stage.make_paths_absolute()
    outputs = _output_directories(copies)
    names = unique_names(name, copies)
    configs = tuple((stage_name, stage_config(stage)) for stage_name, stage in zip(names, copies, strict=True))
    check_outputs(outputs, sources.inputs, sources.directories)
    ends_in_writer = copies[-1].output_directory() is not None
    # Only then a run is ever compared with another.
    held = contents(sources.tasks) if ends_in_writer and sources.stage is None else ""
    parts = chain(
        [held] if held else [],
        (config for _, config in configs),
        (without_url_secrets(f"{file}") for file in sources.inputs),
        sources.names,
    )
    return Plan(
        name=name,
        groups=fuse(copies, names, sources.tasks),
        sources=sources.tasks,
        source_names=sources.names,
        source_stage=sources.stage,
        fingerprint=fingerprint(parts),
        stage_configs=configs,
        inputs=sources.inputs,
        input_directories=sources.directories,
        output_directories=outputs,
        ends_in_writer=ends_in_writer,
        input_bytes=sources.num_bytes,
        held=held,
    )


def decompose(stages: Sequence[AnyStage]) -> list[AnyStage]:
    """Replace composites, and composites in them, by what they stand for."""
    flat: list[AnyStage] = []
    for stage in stages:
        flat += decompose(stage.decompose_and_apply_with()) if isinstance(stage, CompositeStage) else [stage]
    return flat


def unique_names(pipeline: str, stages: Sequence[AnyStage]) -> list[str]:
    """Number the repeats of default names: two `score_filter` become `score_filter` and `score_filter_2`.

    A name somebody chose is not changed behind their back: chosen twice, it is an error.
    """
    chosen: dict[str, AnyStage] = {}
    for stage in stages:
        if stage.name and stage.name != stage.default_name():
            if stage.name in chosen:
                raise ConfigError(f"pipeline {pipeline!r}: expected stage names to differ; got {stage.name!r} twice")
            chosen[stage.name] = stage
    taken: set[str] = set(chosen)
    unique = []
    for stage in stages:
        name = candidate = stage.stage_name()
        number = 1
        while candidate in taken and chosen.get(candidate) is not stage:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def check_is_stage(pipeline: str, given: object) -> None:
    """Raise ConfigError for anything that is not a stage: a class, a function, a list."""
    if not isinstance(given, ProcessingStage):
        hint = "; did you forget to call it?" if isinstance(given, type) else ""
        raise ConfigError(f"pipeline {pipeline!r}: expected a ProcessingStage; got {given!r:.200}{hint}")


def check_stages(name: str, stages: Sequence[AnyStage]) -> None:
    """Raise ConfigError for what is wrong with a stage by itself, or if there is none."""
    if not stages:
        raise ConfigError(f"pipeline {name!r}: expected at least one stage; got none")
    for stage in stages:
        check_is_stage(name, stage)
        remember_those_of(stage)
        if (stage.batch_size or 1) < 1:
            raise ConfigError(f"{stage.stage_name()}: expected batch_size ≥ 1; got {stage.batch_size!r}")
        for bound, most in (("batch_items", stage.batch_items), ("batch_bytes", stage.batch_bytes)):
            if most is not None and most < 1:
                raise ConfigError(f"{stage.stage_name()}: expected {bound} ≥ 1 or None; got {most!r}")
        if stage.lanes < 1:
            raise ConfigError(f"{stage.stage_name()}: expected lanes ≥ 1; got {stage.lanes!r}")
        if inspect.isasyncgenfunction(type(stage).process):
            raise ConfigError(
                f"{stage.stage_name()}: expected `async def process` to return a task, a list of them or None; "
                "got a generator. Collect what it yields in a list"
            )
        workers = stage.num_workers()
        if workers is not None and workers < 1:
            raise ConfigError(f"{stage.stage_name()}: expected num_workers ≥ 1 or None; got {workers!r}")
        own = type(stage)
        if own.process is ProcessingStage.process and own.process_batch is ProcessingStage.process_batch:
            raise ConfigError(f"{stage.stage_name()}: expected a stage with process or process_batch; it has neither")


def _source_name(index: int, task: AnyTask) -> str:
    named = task.partition_name if isinstance(task, FileGroupTask) else ""
    return named or f"part-{index:05d}"


def check_no_secrets(path: str, *, who: str) -> None:
    """Refuse a place to write to whose URL holds a password: the ledger names every file that is written."""
    if has_secrets(path):
        raise ConfigError(
            f"{who}: expected a URL without a password or key in it, since the names of files are written down; "
            f"got {path!r}. Give secrets in the environment, or as storage_options"
        )


def _output_directories(stages: Sequence[AnyStage]) -> tuple[str, ...]:
    owners: dict[str, str] = {}
    for stage in stages:
        directory = stage.output_directory()
        if directory is None:
            continue
        check_no_secrets(directory, who=stage.stage_name())
        if directory.rstrip("/") in owners:
            raise ConfigError(
                f"{stage.stage_name()}: expected an output directory of its own; "
                f"{owners[directory.rstrip('/')]} writes to {directory!r} too"
            )
        owners[directory.rstrip("/")] = stage.stage_name()
    return tuple(owners)
