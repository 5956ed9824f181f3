"""From what a recipe says to objects: stages, the filters inside them, executors.

Everything a constructor would be given is checked first (names, missing ones, types), so that the message can name the
recipe, the stage, the parameter and the nearest right name instead of showing a traceback. A recipe is prepared as a
whole before anything in it is made: one that asks for what it may not have runs nothing.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

from gristmill.backends.base import BaseExecutor
from gristmill.config.catalog import find_class, find_executor, find_object, is_part
from gristmill.config.type_hints import (
    accepts,
    describe_hint,
    element_hint,
    makes,
    may_make,
    options_class,
    parameter_hints,
    wants_object,
)
from gristmill.errors import ConfigError, GristmillError, nearest
from gristmill.secrets import redacted
from gristmill.stages.base import AnyStage, CompositeStage, ProcessingStage
from gristmill.stages.resources import Resources

TARGET = "_target_"
WITH = "with_"
WITH_KEYS = ("name", "resources", "batch_size", "lanes", "num_workers")


@dataclass(frozen=True)
class Call:
    """A class or function and what it will be called with, all of it found and checked; nothing is called yet."""

    target: Callable[..., object]
    arguments: Mapping[str, object]  # values, Calls and lists of both
    hint: object
    who: str

    def make(self) -> object:
        """Call it, and those among its arguments first."""
        values = {name: _made(value) for name, value in self.arguments.items()}
        try:
            made = self.target(**values)
        except GristmillError as error:
            raise ConfigError(f"{self.who}: {error}") from error
        except (TypeError, ValueError) as error:  # a user's constructor speaks for itself
            raise ConfigError(f"{self.who}: {type(error).__name__}: {error}") from error
        if not accepts(made, self.hint):
            raise ConfigError(f"{self.who}: expected {describe_hint(self.hint)}; got {type(made).__name__}")
        return made


@dataclass(frozen=True)
class StageCall:
    """A stage that is ready to be made, and what `with_` changes about it."""

    call: Call
    changes: object | None
    who: str

    def make(self) -> AnyStage:
        """Construct the stage."""
        stage = cast("AnyStage", self.call.make())
        return stage if self.changes is None else _apply_with(stage, self.changes, who=f"{self.who}, {WITH}")


def prepare_stage(item: object, *, who: str, allow_modules: Sequence[str] = ()) -> StageCall:
    """Check `Name`, `{Name: {parameters}}` or `{_target_: path, parameters}`, down to its last parameter.

    Nothing is constructed: a recipe whose last stage is not allowed must not have run the constructor of its first.
    """
    name, parameters = split_item(item, who=who)
    who = f"{who} {name.rpartition('.')[2]}"
    cls = find_class(name, who=who, allow_modules=allow_modules)
    if not issubclass(cls, ProcessingStage):
        raise ConfigError(f"{who}: expected a ProcessingStage; got {cls.__module__}.{cls.__qualname__}")
    changes = parameters.pop(WITH, None)
    return StageCall(prepare(cls, parameters, who=who, allow_modules=allow_modules), changes, who)


def build_executor(item: object, *, who: str, allow_modules: Sequence[str] = ()) -> object:
    """Build an executor from the same three forms."""
    name, parameters = split_item(item, who=who)
    cls = find_executor(name, who=who, allow_modules=allow_modules)
    if not issubclass(cls, BaseExecutor):
        raise ConfigError(f"{who}: expected a BaseExecutor; got {cls.__module__}.{cls.__qualname__}")
    if not parameters.keys() <= inspect.signature(cls).parameters.keys():
        return cls.from_options(parameters)  # some executors take options in a dictionary, and check those themselves
    return prepare(cls, parameters, who=f"{who} {name.rpartition('.')[2]}", allow_modules=allow_modules).make()


def split_item(item: object, *, who: str) -> tuple[str, dict[str, object]]:
    """Return the class's name and its parameters."""
    if isinstance(item, str):
        return item, {}
    if isinstance(item, Mapping) and isinstance(item.get(TARGET), str):
        return str(item[TARGET]), {str(key): value for key, value in item.items() if key != TARGET}
    if not isinstance(item, Mapping) or not item:
        raise ConfigError(f"{who}: expected a stage name, or 'StageName: {{parameters}}'; got {redacted(item)!r:.200}")
    name, parameters = next(iter(item.items()))
    if len(item) > 1:
        hint = " (indent the parameters below the stage's name)" if parameters is None else ""
        raise ConfigError(f"{who}: expected one stage name; got the keys {list(item)!r:.200}{hint}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ConfigError(
            f"{who} {name}: expected its parameters as 'name: value' lines; got {redacted(parameters)!r:.200}"
        )
    return str(name), {str(key): value for key, value in (parameters or {}).items()}


def construct(target: Callable[..., object], parameters: Mapping[str, object], *, who: str) -> object:
    """Check the parameters against the signature, make the values and call the class."""
    return prepare(target, parameters, who=who).make()


def prepare(
    target: Callable[..., object],
    parameters: Mapping[str, object],
    *,
    who: str,
    hint: object = object,
    allow_modules: Sequence[str] = (),
) -> Call:
    """Check names and types of parameters against the signature."""
    try:
        signature = inspect.signature(target)
    except ValueError as error:
        raise ConfigError(f"{who}: expected a class whose parameters are known; {error}") from None
    _check_names(signature, parameters, who)
    hints = parameter_hints(target)
    arguments = {
        key: _prepared(value, hints.get(key, object), allow_modules, who=f"{who}: {key}")
        for key, value in parameters.items()
    }
    return Call(target, arguments, hint, who)


def _check_names(signature: inspect.Signature, parameters: Mapping[str, object], who: str) -> None:
    kinds = inspect.Parameter
    named = {
        name: p
        for name, p in signature.parameters.items()
        if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    takes_any = any(p.kind is kinds.VAR_KEYWORD for p in signature.parameters.values())
    for name in parameters:
        if name not in named and not takes_any:
            offered = ", ".join(key for key in named if not key.startswith("_")) or "none"
            raise ConfigError(f"{who}: expected one of its parameters ({offered}); got {name!r}{nearest(name, named)}")
    missing = [name for name, p in named.items() if p.default is kinds.empty and name not in parameters]
    if missing:
        raise ConfigError(f"{who}: expected a value for {', '.join(missing)}; got none")


def _prepared(value: object, hint: object, allow_modules: Sequence[str], *, who: str) -> object:
    """Return a value that fits the hint, or the call that will make one."""
    if isinstance(value, Mapping) and TARGET in value:
        return _prepared_object(value, hint, allow_modules, who)
    if isinstance(value, Mapping) and (options := options_class(hint)) is not None:
        return prepare(options, {str(key): given for key, given in value.items()}, who=who, hint=hint)
    if isinstance(value, Mapping) and len(value) == 1 and is_part(next(iter(value))):
        return _prepared_object(value, hint, allow_modules, who)
    if isinstance(value, list):
        inner = element_hint(hint)
        value = [_prepared(item, inner, allow_modules, who=who) for item in value]
        if any(isinstance(item, Call) for item in value) and accepts([], hint):
            return value  # each item was checked against the hint of an item
    if accepts(value, hint):
        return value
    if wants_object(hint) and isinstance(value, str | Mapping):
        return _prepared_object(value, hint, allow_modules, who)
    raise ConfigError(f"{who}: expected {describe_hint(hint)}; got {redacted(value)!r:.200}{_in_quotes(value, hint)}")


def _in_quotes(value: object, hint: object) -> str:
    """What to do about `language: no` and `dump_date: 20240101`, where a text is expected."""
    if isinstance(value, bool | int | float | date) and accepts("", hint):
        return ". Put it in quotes: a bare number, date, yes, no, on or off is not text in YAML"
    return ""


def _prepared_object(value: object, hint: object, allow_modules: Sequence[str], who: str) -> object:
    name, parameters = split_item(value, who=who)
    find = find_object if "." in name else find_class
    target = find(name, who=who, allow_modules=allow_modules)
    if isinstance(value, str) and accepts(target, hint) and not makes(target, hint):
        return target  # a function named by its path, not a class whose instance is wanted
    if not callable(target):
        raise ConfigError(f"{who}: expected {name!r} to be a class or a function; got {target!r:.200}")
    if isinstance(target, type) and not may_make(target, hint):
        raise ConfigError(f"{who}: expected {describe_hint(hint)}; got {target.__module__}.{target.__qualname__}")
    who = f"{who} {name.rpartition('.')[2]}"
    return prepare(target, parameters, who=who, hint=hint, allow_modules=allow_modules)


def _made(value: object) -> object:
    if isinstance(value, Call):
        return value.make()
    return [_made(item) for item in value] if isinstance(value, list) else value


def _apply_with(stage: AnyStage, changes: object, *, who: str) -> AnyStage:
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{who}: expected 'name: value' lines; got {redacted(changes)!r:.200}")
    if isinstance(stage, CompositeStage):
        inner = {str(name): _with_arguments(wanted, who=f"{who} {name}") for name, wanted in changes.items()}
        return stage.with_(inner)
    return stage.with_(**_with_arguments(changes, who=who))  # type: ignore[arg-type]  # checked by _with_arguments


def _with_arguments(changes: object, *, who: str) -> dict[str, object]:
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{who}: expected 'name: value' lines; got {redacted(changes)!r:.200}")
    for key in changes:
        if key == "runtime_env":
            raise ConfigError(
                f"{who}: expected runtime_env in Python, as stage.with_(runtime_env=...); got it in a recipe. It "
                "installs and runs code on the cluster, and a recipe is data"
            )
        if key not in WITH_KEYS:
            raise ConfigError(
                f"{who}: expected one of {', '.join(WITH_KEYS)}; got {key!r}{nearest(str(key), WITH_KEYS)}"
            )
    arguments = cast("dict[str, object]", dict(changes))
    if isinstance(arguments.get("resources"), Mapping):
        wanted = cast("Mapping[str, object]", arguments["resources"])
        arguments["resources"] = construct(Resources, wanted, who=f"{who}: resources")
    return arguments
