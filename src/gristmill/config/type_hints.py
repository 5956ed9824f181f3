"""Whether a value from YAML is what a parameter's annotation asks for.

Only what YAML can express and stages annotate is understood; a hint of any other kind accepts everything, because a
check that is wrong about a correct recipe is worse than none.
"""

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Literal, Union, get_args, get_origin

_SCALARS = (bool, int, float, str, type(None))


def parameter_hints(target: Callable[..., object]) -> dict[str, object]:
    """Return the hints of a class's or function's parameters; none where they cannot be resolved."""
    # A class that is a dataclass by inheritance only has parameters of its own.
    plain_class = isinstance(target, type) and "__dataclass_params__" not in vars(target)
    source = inspect.getattr_static(target, "__init__") if plain_class else target
    try:
        return dict(typing.get_type_hints(source))
    except (NameError, TypeError):  # names imported for type checkers only, or a callable without annotations
        return {}


def alternatives(hint: object) -> list[object]:
    """Return the members of a union, or the hint alone."""
    if get_origin(hint) in (Union, types.UnionType):
        return [inner for member in get_args(hint) for inner in alternatives(member)]
    return [type(None) if hint is None else hint]


def accepts(value: object, hint: object) -> bool:
    """Whether the value fits the hint; an int is a float, a bool is not an int, a text is a path."""
    return any(_accepts_one(value, member) for member in alternatives(hint))


def element_hint(hint: object) -> object:
    """Return what the items of a list may be, as a union where several kinds of list are allowed."""
    inner = [get_args(member)[0] for member in alternatives(hint) if _is_list(member) and get_args(member)]
    return functools.reduce(operator.or_, inner) if inner else object


def wants_object(hint: object) -> bool:
    """Whether some class of ours or a function is asked for, so that a name in YAML stands for one."""
    return any(
        get_origin(member) is Callable or (isinstance(kind := get_origin(member) or member, type) and _is_class(kind))
        for member in alternatives(hint)
    )


def options_class(hint: object) -> type | None:
    """Return the class of a group of options, such as `IngestLimits`: frozen data of ours, written as its fields."""
    for one in alternatives(hint):
        made = getattr(one, "__dataclass_params__", None)
        if isinstance(one, type) and made is not None and made.frozen and one.__module__.startswith("gristmill."):
            return one
    return None


def makes(target: object, hint: object) -> bool:
    """Whether the target is a class whose instances fit the hint."""
    kinds = [get_origin(member) or member for member in alternatives(hint)]
    return isinstance(target, type) and any(
        isinstance(kind, type) and _is_class(kind) and not _is_protocol(kind) and issubclass(target, kind)
        for kind in kinds
        if kind is not Callable
    )


def may_make(target: type, hint: object) -> bool:
    """Whether instances of a class can fit the hint, as far as that is known without making one."""
    return makes(target, hint) or any(_may_make_one(target, member) for member in alternatives(hint))


def _may_make_one(target: type, hint: object) -> bool:
    origin = get_origin(hint) or hint
    if origin is Callable:
        return any("__call__" in vars(base) for base in target.__mro__)
    if origin is Literal or origin in _SCALARS:
        return False
    return origin is object or not isinstance(origin, type) or _is_protocol(origin) or issubclass(target, origin)


def describe_hint(hint: object) -> str:
    """Say a hint in words.

    >>> describe_hint(str | list[str] | None)
    'str or list of str or None'
    """
    return " or ".join(dict.fromkeys(_describe_one(member) for member in alternatives(hint)))


def _accepts_one(value: object, hint: object) -> bool:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return value in get_args(hint)
    if origin is Callable:
        return callable(value)
    if _is_list(hint):
        inner = element_hint(hint)
        return isinstance(value, list) and all(accepts(item, inner) for item in value)
    if isinstance(origin, type) and issubclass(origin, tuple):
        return isinstance(value, list | tuple)
    if isinstance(origin, type):
        return _is_instance(value, origin)
    return True


def _is_instance(value: object, kind: type) -> bool:
    if kind is object:
        return True
    if kind in (int, float):
        wanted = (int,) if kind is int else (int, float)
        return isinstance(value, wanted) and not isinstance(value, bool)
    if kind in _SCALARS:
        return isinstance(value, kind)
    if issubclass(kind, PurePath):
        return isinstance(value, str | PurePath)
    if _is_protocol(kind):
        return not isinstance(value, _SCALARS)
    return isinstance(value, kind)


def _is_list(hint: object) -> bool:
    origin = get_origin(hint) or hint
    return origin in (list, Sequence) or (isinstance(origin, type) and origin is not str and issubclass(origin, list))


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _is_class(kind: type) -> bool:
    return kind not in _SCALARS and kind is not object and not issubclass(kind, list | Mapping | tuple | PurePath)


def _describe_one(hint: object) -> str:
    if hint is type(None):
        return "None"
    origin = get_origin(hint) or hint
    if origin is Literal:
        return " or ".join(repr(choice) for choice in get_args(hint))
    if origin is Callable:
        return "function"
    if _is_list(hint):
        return f"list of {describe_hint(element_hint(hint))}" if get_args(hint) else "list"
    return getattr(origin, "__name__", str(origin))
