"""What readers of self-describing files share: parts of files to tables, tables to one batch."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice


def read_tables(
    task: FileGroupTask, fields: Sequence[str] | None, read: Callable[[FileSlice], pa.Table]
) -> DocumentBatch:
    """Read every part and join them; a field no file has is null."""
    batches = [DocumentBatch(task.dataset_name, project(read(part), fields)) for part in task.parts()]
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
