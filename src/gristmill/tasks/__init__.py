"""What flows through a pipeline. Data and cheap accessors, no I/O.

What needs Arrow (`DocumentBatch`, `RecordBatch`, `TableBatch`, `find_rows`) is loaded when it is first used: Arrow
takes longer to import than all the rest, and a pipeline of other tasks starts without it.
"""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from
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

_HOMES = {
    "document": ("DocumentBatch",),
    "records": ("RecordBatch",),
    "table": ("TableBatch",),
    "text_columns": ("find_rows",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)
