"""`as_list`: a parameter that is one value for all, or a list with one for each."""

from collections.abc import Sequence
from typing import TypeVar

from gristmill.errors import ConfigError

T = TypeVar("T")


def as_list(value: T | Sequence[T], length: int, *, who: str, what: str = "filters") -> list[T]:
    """Return one value for each of `length` things: a single value counts for all of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * length
    if len(value) != length:
        raise ConfigError(f"{who}: expected one value, or one for each of {length} {what}; got {list(value)!r}")
    return list(value)
