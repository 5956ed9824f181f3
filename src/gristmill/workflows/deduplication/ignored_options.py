"""Options other tools need and this one does not: accepted, so that a script moves, and said to have no effect.

A workflow lists them as `IGNORED`. Whatever is not listed has to be read: a test holds every workflow to that.
"""

import dataclasses
import warnings
from typing import ClassVar, Protocol


class IgnoresOptions(Protocol):
    """A dataclass that lists the options it does not look at."""

    IGNORED: ClassVar[tuple[str, ...]]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[object]]]


def warn_ignored(given: IgnoresOptions) -> None:
    """Warn once for the options that were set to something else than their default."""
    defaults = {name: given.__dataclass_fields__[name].default for name in given.IGNORED}
    changed = [name for name, default in defaults.items() if getattr(given, name) != default]
    if changed:
        have = "has" if len(changed) == 1 else "have"
        told = f"{type(given).__name__}: {', '.join(changed)} {have} no effect here"
        warnings.warn(told, UserWarning, stacklevel=4)
