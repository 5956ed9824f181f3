"""Pipeline to plan: decompose, list the inputs, check, fuse, fingerprint. Whatever can be wrong is said here."""

from collections.abc import Sequence

from gristmill.engine.plan import AnyStage, AnyTask, Plan
from gristmill.errors import ConfigError
from gristmill.pipeline.columns import check_columns
from gristmill.pipeline.fingerprint import contents, fingerprint, stage_config
from gristmill.pipeline.fusion import fuse
from gristmill.secrets import has_secrets, remember_those_of, without_url_secrets
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.storage.file_system import absolute, is_hidden
from gristmill.tasks import EmptyTask, FileGroupTask, Task


def compile_plan(name: str, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None) -> Plan:
    """Return the plan of a pipeline; its stages are copied, never changed."""
    flat = decompose(stages)
    if not flat:
        raise ConfigError(f"pipeline {name!r}: expected at least one stage; got none")
    _check_stages(name, flat)
    source_stage, sources, rest = _sources(flat, initial_tasks)
    if not rest:
        raise ConfigError(f"pipeline {name!r}: expected a stage behind {source_stage!r}; it only lists what to read")
    check_columns(rest)
    copies = [stage.with_() for stage in rest]
    for stage in copies:
        stage.make_paths_absolute()
    outputs = _output_directories(copies)
    names = unique_names(name, copies)
    configs = tuple((stage_name, stage_config(stage)) for stage_name, stage in zip(names, copies, strict=True))
    inputs = _inputs(sources)
    _check_input_is_safe(inputs, outputs)
    _check_output_is_apart(flat[0].input_directories() if source_stage else [], outputs)
    partitions = [_source_name(i, task) for i, task in enumerate(sources)]
    ends_in_writer = rest[-1].output_directory() is not None
    held = contents(initial_tasks or ()) if ends_in_writer else ""  # only then a run is ever compared with another
    parts = [held] if held else []
    parts += [config for _, config in configs] + [without_url_secrets(f"{i}") for i in inputs] + partitions
    return Plan(
        name=name,
        groups=fuse(copies, names, sources),
        sources=tuple(sources),
        source_names=tuple(partitions),
        source_stage=source_stage,
        fingerprint=fingerprint(parts),
        stage_configs=configs,
        inputs=inputs,
        output_directories=outputs,
        ends_in_writer=ends_in_writer,
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


def _check_stages(name: str, stages: Sequence[AnyStage]) -> None:
    for stage in stages:
        check_is_stage(name, stage)
        remember_those_of(stage)
        if (stage.batch_size or 1) < 1:
            raise ConfigError(f"{stage.stage_name()}: expected batch_size ≥ 1; got {stage.batch_size!r}")
        workers = stage.num_workers()
        if workers is not None and workers < 1:
            raise ConfigError(f"{stage.stage_name()}: expected num_workers ≥ 1 or None; got {workers!r}")
        own = type(stage)
        if own.process is ProcessingStage.process and own.process_batch is ProcessingStage.process_batch:
            raise ConfigError(f"{stage.stage_name()}: expected a stage with process or process_batch; it has neither")


def _sources(
    stages: list[AnyStage], initial_tasks: Sequence[AnyTask] | None
) -> tuple[str | None, list[AnyTask], list[AnyStage]]:
    """The source tasks, and the stages they go through."""
    if initial_tasks is not None:
        for task in initial_tasks:
            if not isinstance(task, Task):
                raise ConfigError(f"initial_tasks: expected tasks; got {task!r:.200}")
        return None, list(initial_tasks), stages
    listed = stages[0].partitions()
    if listed is None:
        return None, [EmptyTask()], stages  # type: ignore[list-item]  # Task is invariant
    return stages[0].stage_name(), list(listed), stages[1:]


def _source_name(index: int, task: AnyTask) -> str:
    named = task.partition_name if isinstance(task, FileGroupTask) else ""
    return named or f"part-{index:05d}"


def _inputs(sources: Sequence[AnyTask]) -> tuple[tuple[str, int, str], ...]:
    files = {
        part.path: (part.path, part.file_size, part.version)
        for task in sources
        if isinstance(task, FileGroupTask)
        for part in task.parts()
    }
    return tuple(files.values())


def _check_input_is_safe(inputs: Sequence[tuple[str, int, str]], outputs: Sequence[str]) -> None:
    """No input may lie where output goes: it would be overwritten, or read again by the next run."""
    for directory in outputs:
        root = absolute(directory).rstrip("/") + "/"
        for path, _, _ in inputs:
            if absolute(path).startswith(root):
                raise ConfigError(f"output directory {directory!r}: expected one without inputs in it; got {path!r}")


def _check_output_is_apart(listed: Sequence[str], outputs: Sequence[str]) -> None:
    """No output may lie in a directory that is read as a whole: the same command again would find other inputs."""
    for directory in outputs:
        for root in listed:
            below = absolute(directory).removeprefix(absolute(root).rstrip("/") + "/")
            if below != absolute(directory) and not any(is_hidden(part) for part in below.split("/")):
                raise ConfigError(
                    f"output directory {directory!r}: expected one outside of the input {root!r}, "
                    "whose files are all read: the next run would read this one's output"
                )


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
