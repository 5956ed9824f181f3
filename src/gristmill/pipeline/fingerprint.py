"""A stage's configuration as text that is equal exactly when the stage does the same.

Used to refuse resuming a run with a changed threshold or a changed function. Values become JSON; functions and classes
of the user's become a hash of their compiled code, constants, defaults and closure, so moving a function to another
line changes nothing and changing a number in it does. No address, hash order or file path may get into it, and no
secret, not even hashed: the configurations are written into the run directory, and a new token is still the same run.
"""

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
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import cast

import xxhash

from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.secrets import is_secret, without_secrets
from gristmill.tasks import EmptyTask, FileGroupTask

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# How a stage is run, not what it does: changing these must not throw away finished work.
NOT_CONTENT = {"name", "resources", "batch_size", "batch_items", "batch_bytes", "lanes", "runtime_env"}
# Class attributes that say nothing about what is done.
NOT_SETTINGS = NOT_CONTENT | {"__doc__", "__module__", "__qualname__", "__firstlineno__"}
DEPTH = 12
AT_ONCE = 1000  # texts of a fingerprint that are encoded together; one by one takes three times as long
CODE = "<code>"  # a key that no parameter can have


def fingerprint(parts: Iterable[str]) -> str:
    """Return 16 hex digits for texts: those of the list of them as JSON, which is never there as a whole."""
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
