"""Names of a package that are fetched from their modules when they are first used.

A program loads what it uses and nothing else: each module costs it, and every worker, a millisecond or two.
"""

import sys
from collections.abc import Callable, Iterable, Mapping


def fetched_from(package: str, homes: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """Return what a package has as `__getattr__`, given which of its modules has which names.

    To be hidden from type checkers, which would believe every misspelt name: `if not TYPE_CHECKING:`.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def fetch(name: str) -> object:
        import importlib

        if name in home_of:
            found: object = getattr(importlib.import_module(f"{package}.{home_of[name]}"), name)
            setattr(sys.modules[package], name, found)  # so that this function is not asked again
            return found
        hint = ""
        if not name.startswith("_"):
            from gristmill.errors import nearest

            hint = nearest(name, list(home_of))
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    return fetch
