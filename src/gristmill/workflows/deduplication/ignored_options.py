"""Options other tools need and this one does not: accepted, so that a script moves, and said to have no effect."""

import warnings
from collections.abc import Mapping


def warn_ignored(who: str, given: object, defaults: Mapping[str, object]) -> None:
    """Warn once for the options that were set to something else than their default."""
    changed = [name for name, default in defaults.items() if getattr(given, name) != default]
    if changed:
        warnings.warn(f"{who}: {', '.join(changed)} have no effect here", UserWarning, stacklevel=4)
