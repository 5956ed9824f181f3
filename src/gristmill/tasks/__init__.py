"""What flows through a pipeline. Data and cheap accessors, no I/O.

What needs Arrow (`DocumentBatch`, `RecordBatch`, `TableBatch`, `find_rows`) is loaded when it is first asked for: Arrow
takes longer to import than all of the rest, and a pipeline of other tasks starts without it.
"""

import importlib
from typing import TYPE_CHECKING

from gristmill.tasks.batch import Batch, ItemRecord
from gristmill.tasks.task import (
    EmptyTask,
    FailedTask,
    FileGroupTask,
    FileSlice,
    NoneTask,
    SentinelTask,
    StagedFile,
    StagePerfStats,
    Task,
)

_EmptyTask = EmptyTask  # what the class was called where `EmptyTask` was an object

if TYPE_CHECKING:
    from gristmill.tasks.document import DocumentBatch
    from gristmill.tasks.records import RecordBatch
    from gristmill.tasks.table import TableBatch
    from gristmill.tasks.text_columns import find_rows

__all__ = [
    "Batch",
    "DocumentBatch",
    "EmptyTask",
    "FailedTask",
    "FileGroupTask",
    "FileSlice",
    "ItemRecord",
    "NoneTask",
    "RecordBatch",
    "SentinelTask",
    "StagePerfStats",
    "StagedFile",
    "TableBatch",
    "Task",
    "find_rows",
]

_LAZY = {
    "DocumentBatch": "gristmill.tasks.document",
    "RecordBatch": "gristmill.tasks.records",
    "TableBatch": "gristmill.tasks.table",
    "find_rows": "gristmill.tasks.text_columns",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found  # so that this function is not asked again
    return found
