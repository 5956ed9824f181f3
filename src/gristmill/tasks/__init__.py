"""What flows through a pipeline. Data and cheap accessors, no I/O.

What needs Arrow (`DocumentBatch`, `TableBatch`, `find_rows`) is loaded when it is first asked for: Arrow takes longer
to import than all of the rest, and a pipeline of other tasks starts without it.
"""

import importlib
from typing import TYPE_CHECKING

from gristmill.tasks.batch import Batch, ItemRecord
from gristmill.tasks.task import EmptyTask, FileGroupTask, FileSlice, StagedFile, StagePerfStats, Task

if TYPE_CHECKING:
    from gristmill.tasks.document import DocumentBatch
    from gristmill.tasks.table import TableBatch
    from gristmill.tasks.text_columns import find_rows

__all__ = [
    "Batch",
    "DocumentBatch",
    "EmptyTask",
    "FileGroupTask",
    "FileSlice",
    "ItemRecord",
    "StagePerfStats",
    "StagedFile",
    "TableBatch",
    "Task",
    "find_rows",
]

_LAZY = {
    "DocumentBatch": "gristmill.tasks.document",
    "TableBatch": "gristmill.tasks.table",
    "find_rows": "gristmill.tasks.text_columns",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found  # so that this function is not asked again
    return found
