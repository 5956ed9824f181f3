"""What flows through a pipeline. Data and cheap accessors, no I/O.

`DocumentBatch` is loaded when it is first asked for: it needs Arrow, which takes longer to import than all of the rest,
and a pipeline of other tasks starts without.
"""

from typing import TYPE_CHECKING

from gristmill.tasks.empty import EmptyTask
from gristmill.tasks.file_group import FileGroupTask, FileSlice, StagedFile
from gristmill.tasks.task import StagePerfStats, Task

if TYPE_CHECKING:
    from gristmill.tasks.document import DocumentBatch

__all__ = ["DocumentBatch", "EmptyTask", "FileGroupTask", "FileSlice", "StagePerfStats", "StagedFile", "Task"]


def __getattr__(name: str) -> object:
    if name != "DocumentBatch":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gristmill.tasks.document import DocumentBatch

    globals()[name] = DocumentBatch  # the next time nobody asks here
    return DocumentBatch
