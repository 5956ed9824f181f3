"""From what a recipe says to objects: stages, the filters inside them, executors.

Everything a constructor would be given is checked first (names, missing ones, types), so that the message can name the
recipe, the stage, the parameter and the nearest right name instead of showing a traceback.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import cast

from gristmill.backends.base import BaseExecutor
from gristmill.config.catalog import filters, find_class, find_executor, find_object, modifiers, rule_sets
from gristmill.config.type_hints import accepts, describe_hint, element_hint, makes, parameter_hints, wants_object
from gristmill.errors import ConfigError, GristmillError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.resources import Resources
from gristmill.tasks import Task

TARGET = "_target_"
WITH = "with_"
WITH_KEYS = ("name", "resources", "batch_size", "num_workers", "runtime_env")

Stage = ProcessingStage[Task[object], Task[object]]


def build_stage(item: object, *, who: str) -> Stage:
    """Build a stage from `Name`, `{Name: {parameters}}` or `{_target_: path, parameters}`."""
    name, parameters = split_item(item, who=who)
    who = f"{who} {name.rpartition('.')[2]}"
    cls = find_class(name, who=who)
    changes = parameters.pop(WITH, None)
    stage = construct(cls, parameters, who=who)
    if not isinstance(stage, ProcessingStage):
        raise ConfigError(f"{who}: expected a ProcessingStage; got {cls.__module__}.{cls.__qualname__}")
    return _apply_with(stage, changes, who=f"{who}, {WITH}") if changes is not None else stage


def build_executor(item: object, *, who: str) -> object:
    """Build an executor from the same three forms."""
    name, parameters = split_item(item, who=who)
    cls = find_executor(name, who=who)
    if issubclass(cls, BaseExecutor) and not parameters.keys() <= inspect.signature(cls).parameters.keys():
        return cls.from_options(parameters)  # some take options in a dictionary; who has one that is not, it knows
    return construct(cls, parameters, who=f"{who} {name.rpartition('.')[2]}")


def split_item(item: object, *, who: str) -> tuple[str, dict[str, object]]:
    """Return the class's name and its parameters."""
    if isinstance(item, str):
        return item, {}
    if isinstance(item, Mapping) and isinstance(item.get(TARGET), str):
        return str(item[TARGET]), {str(key): value for key, value in item.items() if key != TARGET}
    if not isinstance(item, Mapping) or not item:
        raise ConfigError(f"{who}: expected a stage name, or 'StageName: {{parameters}}'; got {item!r}")
    name, parameters = next(iter(item.items()))
    if len(item) > 1:
        hint = " (indent the parameters below the stage's name)" if parameters is None else ""
        raise ConfigError(f"{who}: expected one stage name; got the keys {list(item)!r}{hint}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise ConfigError(f"{who} {name}: expected its parameters as 'name: value' lines; got {parameters!r}")
    return str(name), {str(key): value for key, value in (parameters or {}).items()}


def construct(target: Callable[..., object], parameters: Mapping[str, object], *, who: str) -> object:
    """Check the parameters against the signature, make the values and call the class."""
    try:
        signature = inspect.signature(target)
    except ValueError as error:
        raise ConfigError(f"{who}: expected a class whose parameters are known; {error}") from None
    _check_names(signature, parameters, who)
    hints = parameter_hints(target)
    values = {key: _make_value(value, hints.get(key, object), who=f"{who}: {key}") for key, value in parameters.items()}
    try:
        return target(**values)
    except GristmillError as error:
        raise ConfigError(f"{who}: {error}") from error
    except (TypeError, ValueError) as error:  # a user's constructor speaks for itself
        raise ConfigError(f"{who}: {type(error).__name__}: {error}") from error


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


def _make_value(value: object, hint: object, *, who: str) -> object:
    if isinstance(value, Mapping) and TARGET in value:
        return _make_object(value, hint, who)
    if isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in filters() | modifiers() | rule_sets():
        return _make_object(value, hint, who)
    if isinstance(value, list):
        inner = element_hint(hint)
        value = [_make_value(item, inner, who=who) for item in value]
    if accepts(value, hint):
        return value
    if wants_object(hint) and isinstance(value, str | Mapping):
        return _make_object(value, hint, who)
    raise ConfigError(f"{who}: expected {describe_hint(hint)}; got {value!r}")


def _make_object(value: object, hint: object, who: str) -> object:
    name, parameters = split_item(value, who=who)
    target = find_object(name, who=who) if "." in name else find_class(name, who=who)
    if isinstance(value, str) and accepts(target, hint) and not makes(target, hint):
        return target  # a function named by its path, not a class whose instance is wanted
    if not callable(target):
        raise ConfigError(f"{who}: expected {name!r} to be a class or a function; got {target!r}")
    made = construct(target, parameters, who=f"{who} {name.rpartition('.')[2]}")
    if not accepts(made, hint):
        raise ConfigError(f"{who}: expected {describe_hint(hint)}; got {type(made).__name__}")
    return made


def _apply_with(stage: Stage, changes: object, *, who: str) -> Stage:
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{who}: expected 'name: value' lines; got {changes!r}")
    if isinstance(stage, CompositeStage):
        inner = {str(name): _with_arguments(wanted, who=f"{who} {name}") for name, wanted in changes.items()}
        return stage.with_(inner)
    return stage.with_(**_with_arguments(changes, who=who))  # type: ignore[arg-type]  # checked by _with_arguments


def _with_arguments(changes: object, *, who: str) -> dict[str, object]:
    if not isinstance(changes, Mapping):
        raise ConfigError(f"{who}: expected 'name: value' lines; got {changes!r}")
    for key in changes:
        if key not in WITH_KEYS:
            raise ConfigError(
                f"{who}: expected one of {', '.join(WITH_KEYS)}; got {key!r}{nearest(str(key), WITH_KEYS)}"
            )
    arguments = cast("dict[str, object]", dict(changes))
    if isinstance(arguments.get("resources"), Mapping):
        wanted = cast("Mapping[str, object]", arguments["resources"])
        arguments["resources"] = construct(Resources, wanted, who=f"{who}: resources")
    return arguments
