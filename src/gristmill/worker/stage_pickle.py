"""Stages as bytes for another process, and back."""

import io
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any

from gristmill.engine.plan import Group
from gristmill.errors import ConfigError
from gristmill.secrets import without_secrets


def pickled(groups: tuple[Group, ...]) -> bytes:
    """Pickle the groups of a plan, or say which stage cannot be."""
    import cloudpickle  # only the driver needs it; loading stages does not

    for group in groups:
        for stage in group.stages:
            try:
                cloudpickle.dumps(stage)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise ConfigError(
                    f"{stage.stage_name()}: expected a stage that can be sent to another process; {error}. "
                    "Make what cannot be pickled (clients, locks, open files) in setup()."
                ) from error
    dumped: bytes = cloudpickle.dumps(groups)
    return dumped


def say_nothing(doing: str) -> None:
    """Note nothing, for callers that are not watched."""


def unpickled(pickled: bytes, note: Callable[[str], None] = say_nothing) -> tuple[Group, ...]:
    """The way back. `note` is told what is about to be imported or made, in case that never ends."""
    groups: tuple[Group, ...] = _TellingUnpickler(pickled, note).load()
    return groups


def load_stages(pickled: bytes, note: Callable[[str], None] = say_nothing) -> tuple[tuple[Group, ...] | None, str]:
    """Return the groups, ready to fork workers with, or the traceback of what a user's module threw on the way."""
    try:
        groups = unpickled(pickled, note)
        for group in groups:
            for name, stage in zip(group.names, group.stages, strict=True):
                note(f"in before_fork of stage {name}")
                stage.before_fork()
        return groups, ""
    except Exception:
        return None, without_secrets(traceback.format_exc())


class _TellingUnpickler(pickle.Unpickler):
    """Says what it imports, and what it is about to make."""

    def __init__(self, data: bytes, note: Callable[[str], None]) -> None:
        super().__init__(io.BytesIO(data))
        self._note = note

    def find_class(self, module: str, name: str) -> Any:
        if module not in sys.modules:
            self._note(f"importing {module}")
        found = super().find_class(module, name)
        self._note(f"loading the stages, at {module}.{name}")
        return found
