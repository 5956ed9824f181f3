"""Pipeline to plan: decompose, list the inputs, check, fuse, fingerprint. Whatever can be wrong is said here."""

import copy
import dataclasses
import enum
import hashlib
import inspect
import itertools
import json
import pickle
import types
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import cast

import msgspec
import xxhash

from gristmill.engine.plan import AnyStage, AnyTask, Group, Plan, belong_together
from gristmill.errors import ConfigError, nearest
from gristmill.runs.publication import check_outputs
from gristmill.secrets import has_secrets, is_secret, remember_those_of, without_secrets, without_url_secrets
from gristmill.stages.base import CompositeStage, ProcessingStage, columns_read
from gristmill.stages.io.partitions import Partitions, check_names_differ
from gristmill.tasks import EmptyTask, FileGroupTask, Task

# Column flow: every column a stage reads must come from somewhere before it.
#
# The set of columns is known where a reader knows it (a Parquet schema, `fields`, a sample of JSON lines) and is
# carried on through stages that say what they add. A user's own stage may add anything, so after one nothing is an
# error any more: no false alarms, at the price of finding some mistakes at run time.


def check_columns(stages: Sequence[AnyStage]) -> None:
    """Raise ConfigError for the first column that no earlier stage provides."""
    known: list[str] | None = None  # None: anything may be there
    origin = ""
    for stage in stages:
        if known is not None:
            for column in columns_read(stage):
                if column not in known:
                    raise ConfigError(
                        f"{stage.stage_name()}: expected a column {column!r} from {origin}; "
                        f"got {_listed(known)}{nearest(column, known)}"
                    )
            for column in stage.new_columns():
                if column in known:
                    raise ConfigError(
                        f"{stage.stage_name()}: expected no column {column!r} yet; {origin} has it. "
                        "Choose another name, or let the stage replace it"
                    )
        own = stage.columns()
        if own is not None:
            known, origin = list(own), stage.stage_name()
        elif known is not None and stage.adds_only_declared_columns:
            known += [column for column in stage.outputs()[1] if column not in known]
        else:
            known = None


def check_values(stages: Sequence[AnyStage]) -> None:
    """Raise ConfigError for the first value a stage was given that its column cannot have."""
    values: dict[str, Sequence[str]] = {}  # all that may be in a column, where a stage has said so
    for stage in stages:
        for column, named in stage.named_values().items():
            for name in named:
                if name not in (known := values.get(column, named)):
                    got = f"got {name!r}{nearest(name, known)}"
                    raise ConfigError(f"{stage.stage_name()}: expected values of {column!r}, {list(known)}; {got}")
        kept = set(values).difference(stage.outputs()[1]) if stage.adds_only_declared_columns else ()
        values = {**{column: values[column] for column in kept}, **stage.known_values()}


def _listed(columns: Sequence[str], most: int = 12) -> str:
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"{list(columns[:most])}{more}"


# Which neighbouring stages run in one process, handing tasks over as objects.
#
# Moving a batch to another process costs a copy and a round trip, so neighbours are fused unless there is a reason
# not to: other resources or environment, another number of workers, a GPU (its memory was asked for by one stage),
# a stage that batches tasks the group before it does not, a stage that must not be fused, or a source that streams one
# large file, or a few parts to a slow stage: then the stages after it can keep the other cores busy.


def fuse(stages: Sequence[AnyStage], names: Sequence[str], sources: Sequence[AnyTask]) -> tuple[Group, ...]:
    """Cut the line of stages into groups."""
    cuts = [0]
    for index in range(1, len(stages)):
        few = len(sources) < stages[0].fusible_from
        streaming = index == 1 and (few or any(stages[0].streams(task) for task in sources))
        if streaming or not belong_together(stages[index - 1], stages[index], stages[cuts[-1]]):
            cuts.append(index)
    cuts = _apart_unless_written(stages, cuts)
    ends = [*cuts[1:], len(stages)]
    return tuple(_group(n, stages, names, first, end) for n, (first, end) in enumerate(zip(cuts, ends, strict=True)))


def _apart_unless_written(stages: Sequence[AnyStage], cuts: Sequence[int]) -> list[int]:
    """Cut off a stage that `fuses_to_the_end` from its neighbours, unless all up to the writer are in its group."""
    is_written = stages[-1].output_directory() is not None
    apart = [
        index for index, stage in enumerate(stages) if stage.fuses_to_the_end and not (is_written and index >= cuts[-1])
    ]
    more = [cut for index in apart for cut in (index, index + 1) if cut < len(stages)]
    return sorted({*cuts, *more})


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


def compile_chain(name: str, stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None) -> Plan:
    """Return the plan of a pipeline; if it has exchanges, `Plan.then` is the plan of what comes after the first.

    The input is listed, and looked into for its columns, once: what is checked here is what runs. Where rows meet is
    known only when the run has a directory: the run fills that in.
    """
    flat = decompose(stages)
    check_stages(name, flat)
    if (flat[0].is_exchange or flat[0].searches) and initial_tasks is None:
        raise ConfigError(
            f"pipeline {name!r}: expected a reader before {flat[0].stage_name()!r}; it is the first stage"
        )
    sources, rest = take_sources(flat, initial_tasks)
    check_columns(rest)
    check_values(rest)
    if any(stage.is_exchange or stage.searches for stage in rest):
        from gristmill.pipeline.segments import compile_segments

        return compile_segments(name, rest, sources)
    return compile_plan(name, rest, sources)


class Sources(msgspec.Struct, frozen=True):
    """The beginning of a line of stages: tasks that were given, or partitions its first stage has listed."""

    tasks: Sequence[AnyTask]
    names: Sequence[str]  # of the partitions
    inputs: Sequence[tuple[str, int, str]]  # (path, size, version) of every file
    num_bytes: int
    stage: str | None = None  # the stage that listed them, which then has nothing else to do
    directories: tuple[str, ...] = ()  # that it reads as a whole
    note: str = ""  # what it says of the list

    @classmethod
    def of(cls, tasks: Sequence[AnyTask], stage: str | None = None, directories: Sequence[str] = ()) -> "Sources":
        """Return the sources these tasks are. A list of files is not looked through: there may be a million."""
        if isinstance(tasks, Partitions):
            return cls(tasks, tasks.names, tasks.files, tasks.nbytes, stage, tuple(directories))
        files = {
            part.path: (part.path, part.file_size, part.version)
            for task in tasks
            if isinstance(task, FileGroupTask)
            for part in task.parts()
        }
        check_names_differ(names := tuple(map(_source_name, range(len(tasks)), tasks)), who=stage or "initial_tasks")
        num_bytes = sum(task.nbytes for task in tasks)
        return cls(tuple(tasks), names, tuple(files.values()), num_bytes, stage, tuple(directories))


def take_sources(stages: Sequence[AnyStage], initial_tasks: Sequence[AnyTask] | None) -> tuple[Sources, list[AnyStage]]:
    """Return the source tasks of a pipeline, and the stages they go through. The input is listed here, once per run."""
    if initial_tasks is not None:
        for task in initial_tasks:
            if not isinstance(task, Task):
                raise ConfigError(f"initial_tasks: expected tasks; got {task!r:.200}")
        return Sources.of(initial_tasks), list(stages)
    listed = stages[0].partitions()
    if listed is None or len(stages) == 1:  # a stage that lists, alone: its list is what is wanted
        return Sources.of([EmptyTask()]), list(stages)
    sources = Sources.of(listed, stages[0].stage_name(), stages[0].input_directories())
    return msgspec.structs.replace(sources, note=stages[0].plan_note()), list(stages[1:])


def compile_plan(name: str, stages: Sequence[AnyStage], sources: Sources) -> Plan:
    """Return the plan of stages without an exchange; they are copied, never changed."""
    copies = [stage.with_() for stage in stages]
    for stage in copies:
        stage.make_paths_absolute()
    outputs = _output_directories(copies)
    names = unique_names(copies)
    configs = tuple((stage_name, stage_config(stage)) for stage_name, stage in zip(names, copies, strict=True))
    check_outputs(outputs, sources.inputs, sources.directories)
    ends_in_writer = copies[-1].output_directory() is not None
    # Only then is a run ever compared with another.
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
        source_note=sources.note,
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


def unique_names(stages: Sequence[AnyStage]) -> list[str]:
    """Number the repeats of a name: two `score_filter` become `score_filter` and `score_filter_2`.

    A name that a stage was given, in its own constructor or by `with_`, goes to the first that has it; default names
    give way.
    """
    chosen: dict[str, AnyStage] = {}
    for stage in stages:
        if stage.name and stage.name != stage.default_name():
            chosen.setdefault(stage.name, stage)
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
        acts = own.process is not ProcessingStage.process or own.process_batch is not ProcessingStage.process_batch
        if not acts and not own.searches:  # one that searches returns what acts in its place
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


# Fingerprints: a stage's configuration as text that is equal exactly when the stage does the same.
#
# Used to refuse resuming a run with a changed threshold or a changed function. Values become JSON; functions and
# classes of the user's become a hash of their compiled code, constants, defaults and closure, so moving a function to
# another line changes nothing and changing a number in it does. No address, hash order or file path may get into it,
# and no secret, not even hashed: the configurations are written into the run directory, and a new token is still the
# same run.

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# How a stage is run, not what it does: changing these must not throw away finished work.
NOT_CONTENT = {"name", "resources", "batch_size", "batch_items", "batch_bytes", "lanes", "runtime_env"}
# Class attributes that say nothing about what is done.
NOT_SETTINGS = NOT_CONTENT | {"__doc__", "__module__", "__qualname__", "__firstlineno__"}
DEPTH = 12
AT_ONCE = 1000  # texts of a fingerprint that are encoded together; one by one takes three times as long
CODE = "<code>"  # a key that no parameter can have


def fingerprint(parts: Iterable[str]) -> str:
    """Return 16 hex digits for texts: those of their list as JSON, which is never in memory as a whole."""
    digest, rest, between = hashlib.sha256(b"["), iter(parts), ""
    while some := list(itertools.islice(rest, AT_ONCE)):
        digest.update(f"{between}{json.dumps(some)[1:-1]}".encode())
        between = ", "
    digest.update(b"]")
    return digest.hexdigest()[:16]


def contents(tasks: Iterable[AnyTask]) -> str:
    """Return 16 hex digits for what tasks hold in memory, or "" if they only name files or hold nothing.

    Their history does not count. A task that cannot be pickled is like no other, not even itself the next time.
    """
    digest = xxhash.xxh3_64()
    held = [task for task in tasks if not isinstance(task, FileGroupTask | EmptyTask)]
    for task in held:
        plain = copy.copy(task)
        plain._stage_perf, plain.task_id = [], ""
        buffers: list[pickle.PickleBuffer] = []
        try:
            digest.update(pickle.dumps(plain, protocol=5, buffer_callback=buffers.append))
        except (pickle.PicklingError, AttributeError, TypeError):
            digest.update(uuid.uuid4().bytes)
        for buffer in buffers:
            digest.update(buffer.raw())
    return digest.hexdigest() if held else ""


def stage_config(stage: AnyStage) -> str:
    """Return the canonical configuration of a stage, as JSON."""
    config = {k: v for k, v in stage.get_config().items() if k not in NOT_CONTENT}
    described = _fields(config, -1)
    kind = type(stage)
    return json.dumps({"class": f"{kind.__module__}.{kind.__qualname__}", CODE: _class_code(kind), **described})


def canonical(value: object, depth: int = 0) -> Json:  # noqa: C901, PLR0911  # one branch for each kind of value
    """Return a JSON value that is the same for equal values in every process."""
    if depth > DEPTH:
        return f"<{type(value).__qualname__}>"
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return f"bytes:{hashlib.sha256(value).hexdigest()[:16]}"
    if isinstance(value, PurePath):
        return without_secrets(str(value))
    if isinstance(value, Mapping):
        return _fields(value, depth)
    if isinstance(value, list | tuple):
        return [canonical(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((canonical(item, depth + 1) for item in value), key=json.dumps)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}:{_class_code(value)}"
    if isinstance(value, types.FunctionType | types.MethodType):
        return _function(value, depth)
    return _object(value, depth)


def _fields(values: Mapping[str, object], depth: int) -> dict[str, Json]:
    named = sorted(((str(name), value) for name, value in values.items()), key=lambda pair: pair[0])
    return {name: canonical(value, depth + 1) for name, value in named if not is_secret(name)}


def _object(value: object, depth: int) -> Json:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
    else:
        fields = {k: v for k, v in getattr(value, "__dict__", {}).items() if k != "_context"}
    described: dict[str, Json] = {"class": kind, CODE: _class_code(type(value))}
    return described | _fields(fields, depth)


def _function(function: types.FunctionType | types.MethodType, depth: int) -> Json:
    bound = function.__self__ if isinstance(function, types.MethodType) else None
    plain = cast("types.FunctionType", function.__func__ if isinstance(function, types.MethodType) else function)
    code = plain.__code__
    cells: list[Json] = []
    for name, cell in zip(code.co_freevars, plain.__closure__ or (), strict=True):
        try:
            cells.append(None if is_secret(name) else canonical(cell.cell_contents, depth + 1))
        except ValueError:  # not filled yet: a function that refers to itself
            cells.append("<empty>")
    given = plain.__defaults__ or ()
    defaults = dict(zip(code.co_varnames[code.co_argcount - len(given) : code.co_argcount], given, strict=True))
    return {
        "function": f"{plain.__module__}.{plain.__qualname__}",
        CODE: _code(code),
        "defaults": _fields(defaults | (plain.__kwdefaults__ or {}), depth),
        "closure": cells,
        "self": canonical(bound, depth + 1),
    }


def _code(code: types.CodeType) -> str:
    digest = hashlib.sha256(code.co_code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            digest.update(_code(constant).encode())
        elif isinstance(constant, frozenset):
            digest.update(repr(sorted(map(repr, constant))).encode())
        else:
            digest.update(repr(constant).encode())
    digest.update(repr((code.co_names, code.co_varnames[: code.co_argcount])).encode())
    return digest.hexdigest()[:16]


def _class_code(cls: type) -> str:
    """A hash of the user's own code in a class and its bases; gristmill's is covered by the version in the header."""
    digest = hashlib.sha256()
    for base in cls.__mro__:
        if base is object or base.__module__.partition(".")[0] in ("gristmill", "typing", "builtins", "abc"):
            continue
        for name, member in sorted(vars(base).items()):
            function = inspect.unwrap(member) if callable(member) else getattr(member, "fget", None)
            function = getattr(function, "__func__", function)
            if isinstance(function, types.FunctionType):
                digest.update(f"{name}:{_code(function.__code__)}".encode())
            elif isinstance(member, bool | int | float | str) and name not in NOT_SETTINGS:
                digest.update(f"{name}={member!r}".encode())
    return digest.hexdigest()[:16]
