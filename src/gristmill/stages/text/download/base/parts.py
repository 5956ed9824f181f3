"""Files as they lie on a disk or a store, to tasks of one part each."""

from gristmill.errors import ReadError
from gristmill.stages.io.splitting import Splitter
from gristmill.storage.file_system import UNKNOWN_SIZE, FileStatus, file_system
from gristmill.tasks import FileGroupTask, FileSlice


def parts_of_files(task: FileGroupTask, splitter: Splitter, block_bytes: int) -> list[FileGroupTask]:
    """Return a task for each part of each file, in order; a file that is not divided is one part."""
    options = task.reader_config.get("storage_options")
    made = []
    for part in task.parts():
        status = file_system(part.path, options).status(part.path)  # type: ignore[arg-type]  # what its reader gave
        if status is None:
            raise ReadError(f"{part.path}: expected a readable file; got none")
        parts = parts_of_file(status, splitter, block_bytes, part.weight) if part.part is None else [part]
        made += [_task(task, each) for each in parts]
    return made


def parts_of_file(file: FileStatus, splitter: Splitter, block_bytes: int, weight: float = 1.0) -> list[FileSlice]:
    """Return the parts of a file that is where its status says, whole if it is not divided."""
    parts = splitter.parts_of(file, block_bytes, None) if file.size > block_bytes else []
    size = 0 if file.size == UNKNOWN_SIZE else file.size
    if len(parts) < 2:
        return [FileSlice(file.path, None, size, file.version, size, weight)]
    return [FileSlice(file.path, part.numbers, size, file.version, part.num_bytes, weight) for part in parts]


def _task(task: FileGroupTask, part: FileSlice) -> FileGroupTask:
    return FileGroupTask(
        task.dataset_name, [part.path], _metadata=dict(task._metadata), reader_config=task.reader_config, slices=(part,)
    )
