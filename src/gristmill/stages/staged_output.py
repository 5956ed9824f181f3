"""How a stage that writes files hands one over: under a temporary name in a run, at once outside of one."""

from collections.abc import Iterable

from gristmill.stages.context import StageContext
from gristmill.storage.atomic_write import Chunk, force_file, stage_file, write_file
from gristmill.storage.failures import explained
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import FileGroupTask, StagedFile, Task


def write_output(
    context: StageContext,
    final: str,
    chunks: Iterable[Chunk],
    task: Task[object],
    *,
    storage_options: StorageOptions | None = None,
) -> FileGroupTask:
    """Write what `task` became to the file `final`; return the file as a task, to be published by the ledger."""
    directory, _, name = final.rpartition("/")
    temporary = context.staging_path(directory, name)
    if temporary is None:
        write_file(final, chunks, storage_options=storage_options)
        return FileGroupTask(task.dataset_name, [final])
    with explained(final):
        written = stage_file(temporary, chunks, storage_options=storage_options)
        if context.forces:
            force_file(temporary)
    staged = StagedFile(temporary, final, written.num_bytes, task.num_items, written.checksum)
    return FileGroupTask(task.dataset_name, [final], staged=(staged,))
