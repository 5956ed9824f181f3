"""What readers of tables share: parts of files to tables, tables to one batch, or to several if it would be too large.

How many batches there are depends on the files and the parameters only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar, TypeVar, cast

import pyarrow as pa

from gristmill.errors import DamagedFile
from gristmill.stages.io.files import ReadingStage, lost_part, part_options
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice, TableBatch

T = TypeVar("T", bound=TableBatch)
MAX_BLOCKS = 4  # in one batch: a block is what is stored, and texts are stored at about a quarter


@dataclass(eq=False)
class TableReadingStage(ReadingStage[T]):
    """Read files whose rows come as tables. A part that is damaged is on record, and the others are read."""

    kind: ClassVar[type[TableBatch]] = DocumentBatch  # what is made of the rows: T, which a class attribute cannot say

    block_bytes: int = field(default=DEFAULT_BLOCK_BYTES, kw_only=True)

    def tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        """Yield the rows of a part, in one table unless that would have more than `self._most_at_once` bytes."""
        raise NotImplementedError

    @property
    def _most_at_once(self) -> int:
        return MAX_BLOCKS * self.block_bytes

    def streams(self, task: FileGroupTask) -> bool:
        return task.nbytes > self._most_at_once

    def process(self, task: FileGroupTask) -> T | Iterator[T]:
        """Read one batch, or a stream of batches where there is more than that to read."""
        tables = self._tables(task)
        read: list[pa.Table] = []
        size = 0
        for table in tables:
            read.append(table)
            size += table.nbytes
            if len(read) > 1 and size > self._most_at_once:
                return self._batches(task, chain(read, tables))
        return iter([self._batch(task, read)]) if self.streams(task) else self._batch(task, read)

    def _tables(self, task: FileGroupTask) -> Iterator[pa.Table]:
        options = part_options(task.reader_config, self.read_kwargs)
        for part in task.parts():
            try:
                yield from self.tables_of(part, options)
            except DamagedFile as error:
                self.context.quarantine(lost_part(error, part.path))

    def _batches(self, task: FileGroupTask, tables: Iterable[pa.Table]) -> Iterator[T]:
        for table in tables:
            yield self._batch(task, [table])

    def _batch(self, task: FileGroupTask, tables: list[pa.Table]) -> T:
        """Join tables; a field no file has is null."""
        kind = cast("type[T]", self.kind)
        batches = [kind(task.dataset_name, project(table, self._kept())) for table in tables]
        batch = kind.concat(batches) if batches else kind(task.dataset_name, pa.table({}))
        batch._metadata["source_files"] = list(task.data)
        return batch

    def _kept(self) -> Sequence[str] | None:
        """The columns a batch has, or None for all."""
        return self.fields


def in_blocks(batches: Iterable[pa.RecordBatch], block_bytes: int) -> Iterator[pa.Table]:
    """Join neighbours into tables of about a block."""
    group: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            group.append(batch)
            size += batch.nbytes
            if size >= block_bytes:
                yield pa.Table.from_batches(group)
                group, size = [], 0
    except (pa.ArrowException, OSError):  # damage: what was read before it is good
        if group:
            yield pa.Table.from_batches(group)
        raise
    if group:
        yield pa.Table.from_batches(group)


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
