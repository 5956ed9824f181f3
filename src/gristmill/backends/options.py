"""The executors there are, and the message for an option one of them does not have.

An executor knows its own options (`BaseExecutor.options`); asked for another's, it says whose it is. No executor is
imported here before a mistake is made.
"""

import importlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError, nearest

if TYPE_CHECKING:  # its `from_options` imports this file
    from gristmill.backends.base import BaseExecutor

# What recipes and the command line call them, the default first.
EXECUTORS = {
    "local": "gristmill.backends.local.LocalExecutor",
    "ray": "gristmill.backends.ray_actor_pool.RayActorPoolExecutor",
    "ray_data": "gristmill.backends.ray_data.RayDataExecutor",
    "xenna": "gristmill.backends.xenna.XennaExecutor",
}


def check_options(executor: "type[BaseExecutor]", given: Iterable[str]) -> None:
    """Raise ConfigError for the first option this executor does not have."""
    known = executor.options()
    for name in given:
        if name not in known:
            who, offered = executor.__name__, ", ".join(known)
            hint = nearest(name, known)
            others = [other.__name__ for other in _others(executor) if name in other.options()]
            if others:
                hint = f". {' and '.join(others)} {'has' if len(others) == 1 else 'have'} it"
            raise ConfigError(f"{who}: expected one of its options ({offered}); got {name!r}{hint}")


def _others(executor: "type[BaseExecutor]") -> "Iterator[type[BaseExecutor]]":
    for path in EXECUTORS.values():
        module, _, name = path.rpartition(".")
        found: type[BaseExecutor] = getattr(importlib.import_module(module), name)
        if found is not executor:
            yield found
