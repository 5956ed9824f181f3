"""Deduplication as stages of any pipeline. The workflows, which read and write too, are in the modules below.

The stages are loaded when they are first asked for: importing a workflow does not load them. They are loaded when it
runs, while the fork server starts.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gristmill.deduplication.exact_deduplication import ExactDeduplication
    from gristmill.deduplication.fuzzy_deduplication import FuzzyDeduplication
    from gristmill.deduplication.part_deduplication import PartDeduplication
    from gristmill.deduplication.semantic_deduplication import SemanticDeduplication

__all__ = ["ExactDeduplication", "FuzzyDeduplication", "PartDeduplication", "SemanticDeduplication"]

_LAZY = {
    "ExactDeduplication": "gristmill.deduplication.exact_deduplication",
    "FuzzyDeduplication": "gristmill.deduplication.fuzzy_deduplication",
    "PartDeduplication": "gristmill.deduplication.part_deduplication",
    "SemanticDeduplication": "gristmill.deduplication.semantic_deduplication",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found  # so that this function is not called again
    return found
