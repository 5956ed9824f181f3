"""What flows through a pipeline. Data and cheap accessors, no I/O."""

from gristmill.tasks.document import DocumentBatch
from gristmill.tasks.empty import EmptyTask
from gristmill.tasks.file_group import FileGroupTask, FileSlice, StagedFile
from gristmill.tasks.task import StagePerfStats, Task

__all__ = ["DocumentBatch", "EmptyTask", "FileGroupTask", "FileSlice", "StagePerfStats", "StagedFile", "Task"]
