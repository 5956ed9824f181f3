"""What readers of self-describing files share: parts of files to tables, tables to one batch."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from gristmill.errors import DamagedFile
from gristmill.stages.context import StageContext
from gristmill.stages.text.io.reader.reading_stage import lost_part
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice


def read_tables(
    task: FileGroupTask, fields: Sequence[str] | None, read: Callable[[FileSlice], pa.Table], context: StageContext
) -> DocumentBatch:
    """Read every part and join them; a field no file has is null. A part that is damaged is on record, and left out."""
    batches = []
    for part in task.parts():
        try:
            batches.append(DocumentBatch(task.dataset_name, project(read(part), fields)))
        except DamagedFile as error:
            context.quarantine(lost_part(error, part.path))
    batch = DocumentBatch.concat(batches) if batches else DocumentBatch(task.dataset_name, pa.table({}))
    batch._metadata["source_files"] = list(task.data)
    return batch


def project(table: pa.Table, fields: Sequence[str] | None) -> pa.Table:
    """Return these columns in this order, null where the table lacks them."""
    if fields is None:
        return table
    for name in fields:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table), pa.string()))
    return table.select(fields)


def damaged(part: FileSlice, expected: str, got: object) -> DamagedFile:
    """The error for a part of a file that cannot be read as what it should be."""
    error = DamagedFile(f"{part.path}: expected {expected}; got {got}")
    error.lost_bytes = part.num_bytes or part.file_size
    return error
