"""What filters, modifiers and functions are called in stage names, reasons and metrics, and `as_list` for several."""

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from gristmill.errors import ConfigError

T = TypeVar("T")

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@runtime_checkable
class Named(Protocol):
    """A filter or a modifier."""

    @property
    def name(self) -> str: ...


def snake_case(class_name: str) -> str:
    """Return a class's name in lower case with underscores.

    >>> snake_case("XMLHeader")
    'xml_header'
    """
    return _WORD_START.sub("_", class_name).lower()


def name_of(thing: object) -> str:
    """A filter's or modifier's name, or a function's."""
    if isinstance(thing, Named):
        return thing.name
    name = getattr(thing, "__name__", type(thing).__name__)
    return "function" if name == "<lambda>" else str(name)


def join_names(things: Sequence[object]) -> str:
    """One name for several: the first one's, and how many follow."""
    first = name_of(things[0])
    return first if len(things) == 1 else f"{first}_and_{len(things) - 1}_more"


def as_list(value: T | Sequence[T], length: int, *, who: str, what: str = "filters") -> list[T]:
    """Return one value for each of `length` things: a single value counts for all of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * length
    if len(value) != length:
        raise ConfigError(f"{who}: expected one value, or one for each of {length} {what}; got {list(value)!r}")
    return list(value)
