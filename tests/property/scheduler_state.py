"""Everything a scheduler remembers, as plain values that can be compared. Also what nobody has thought of listing."""

from collections import deque
from enum import Enum

from gristmill.engine.scheduler import Scheduler

LINKS = {"scheduler", "_apply", "out"}  # back to the owner, to methods, and what is empty between steps


def state_of(scheduler: Scheduler) -> object:
    """Two of these are equal if no later event can tell the schedulers apart."""
    return _plain(scheduler, {})


def _plain(value: object, seen: dict[int, int]) -> object:
    if value is None or isinstance(value, int | float | str | Enum):
        return value
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return tuple((_plain(key, seen), _plain(part, seen)) for key, part in value.items())
    if isinstance(value, set | frozenset):
        return tuple(sorted(value))
    if isinstance(value, list | tuple | deque):
        return tuple(_plain(part, seen) for part in value)
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names += getattr(value, "__dict__", {})
    return (type(value).__name__, *((name, _plain(getattr(value, name), seen)) for name in names if name not in LINKS))
