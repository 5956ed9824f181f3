"""A Parquet file, looked at some rows at a time: never a whole row group for a page.

Parquet can be read from the beginning of a row group only. So a row in the middle costs decoding what is before it in
its group, a few megabytes at a time, and the next page continues where this one ended. A condition reads the columns it
names first, and the others only of groups that hold a wanted row.
"""

import contextlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gristmill.errors import DamagedFile, ReadError
from gristmill.inspection.columns import Kind, kinds_of_schema
from gristmill.inspection.rows import Count, Found, Row
from gristmill.inspection.wanted import Wanted
from gristmill.storage.open_read import InputFile

_BUFFER_BYTES = 1 << 18
_BATCH_BYTES = 2 << 20
_MOST_ROWS = 256
_LONGEST_VALUE = 1 << 20  # of a text shown; a value of 100 MB would take several times that as a Python string


@dataclass
class _Cursor:
    """Where the reading of a group is: the batches to come, and the one at hand with the row it begins at."""

    group: int
    batches: Iterator[pa.RecordBatch]
    batch: pa.RecordBatch | None
    first: int


class ParquetTable:
    """One Parquet file. A file whose footer cannot be read has one row, and that says so."""

    is_streamed = False

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage = ""
        self._open()
        self._cursor: _Cursor | None = None

    def _open(self) -> None:
        self._input = InputFile(self.path)
        self._native = self._input.native()
        self._bounds = [0]
        try:
            # With read-ahead, or without the buffer, a whole column of a row group is in memory as it is stored: 54 MB
            # where this takes 4 (docs/log/2026-11-17-inspect.md).
            self._file = pq.ParquetFile(
                self._native, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER_BYTES
            )
            metadata = self._file.metadata
            self._bounds += accumulate(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            self.damage = f"expected a whole Parquet file; got {error}"

    @property
    def size(self) -> int:
        return 1 if self.damage else self._bounds[-1]

    def close(self) -> None:
        """Close the file."""
        self._cursor = None
        with contextlib.suppress(ReadError):
            self._native.close()
            self._input.__exit__(None)

    def kinds(self) -> dict[str, Kind]:
        """The columns and the fields of records."""
        return {} if self.damage else kinds_of_schema(self._file.schema_arrow)

    def num_rows(self) -> Count:
        """How many rows there are, as the footer says."""
        return Count(self.size, is_exact=True)

    def row_at(self, offset: int) -> Count:
        """The number, from 1, of the row at an offset."""
        return Count(offset + 1, is_exact=True)

    def at_row(self, number: int) -> int:
        """Where the row of a number, from 1, is."""
        return max(0, min(number, self.size) - 1)

    def back(self, offset: int, count: int) -> tuple[int, int]:
        """Where the row `count` rows earlier is, and how many were missing."""
        found = min(offset, self.size) - count
        return max(0, found), max(0, -found)

    def near(self, share: float) -> int:
        """A row about that far into the file, where a few megabytes of its group at most must be decoded before it."""
        row = min(int(self.size * share), max(0, self.size - 1))
        if self.damage or not self.size:
            return 0
        group = self._group_of(row)
        start, step = self._bounds[group], self._batch_rows(group)
        return start + min(row - start, 16 * step)

    def place_name(self, offset: int) -> str:
        """The file and the row, for people."""
        return f"{self.path}: row {offset + 1:,}"

    def read(self, offset: int, count: int) -> list[Row]:
        """Return rows from an offset on. What cannot be decoded, to the end of its row group, is one damaged row."""
        if self.damage:
            return [] if offset else [Row(0, 1, damage=self.damage)]
        rows: list[Row] = []
        while offset < self.size and len(rows) < count:
            try:
                batch, first = self._batch_with(offset)
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                rows.append(self._damaged(offset, error))
            else:
                stop = min(len(batch), offset - first + count - len(rows))
                rows += [_row(batch, number, first) for number in range(offset - first, stop)]
            offset = rows[-1].end
        return rows

    def _damaged(self, offset: int, error: Exception) -> Row:
        self._cursor = None
        end = self._bounds[self._group_of(offset) + 1]
        return Row(offset, end, damage=f"rows {offset + 1:,} to {end:,} cannot be read: {error}")

    def _batch_with(self, row: int) -> tuple[pa.RecordBatch, int]:
        """The batch that holds a row, and the row it begins with; continues where the last one ended if it can."""
        group, cursor = self._group_of(row), self._cursor
        if cursor is None or cursor.group != group or row < cursor.first:
            cursor = self._cursor = _Cursor(group, self._batches(group, None), None, self._bounds[group])
        while cursor.batch is None or row >= cursor.first + len(cursor.batch):
            cursor.first += 0 if cursor.batch is None else len(cursor.batch)
            cursor.batch = None  # before the next one is decoded, not beside it
            cursor.batch = next(cursor.batches, None)
            if cursor.batch is None:
                raise DamagedFile(
                    f"{self.path}: expected {self._bounds[group + 1]:,} rows up to here; got {cursor.first:,}"
                )
        return cursor.batch, cursor.first

    def _batches(self, group: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        rows = self._batch_rows(group)
        return self._file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)  # type: ignore[no-any-return]

    def _batch_rows(self, group: int) -> int:
        found = self._file.metadata.row_group(group)
        mean = max(1, int(found.total_byte_size) // max(1, int(found.num_rows)))
        return max(1, min(_MOST_ROWS, _BATCH_BYTES // mean))

    def _group_of(self, row: int) -> int:
        return bisect_right(self._bounds, row) - 1

    def matches(self, offset: int, wanted: Wanted) -> Iterator[Found]:
        """Yield what each batch of rows holds of the wanted ones."""
        if self.damage:
            yield Found((), 0, 1, 0, 1)
            return
        if wanted.is_all:
            yield from self._all_from(offset)
            return
        schema = self._file.schema_arrow
        columns = wanted.columns_of(schema) or schema.names[:1]  # without a column there would be no rows
        while offset < self.size:
            group = self._group_of(offset)
            try:
                for found in self._wanted_in(group, offset, wanted, columns):
                    yield found
                    offset = found.end
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                row = self._damaged(offset, error)
                yield Found((), 0, row.end - row.offset, 0, row.end)
            offset = self._bounds[group + 1]

    def _all_from(self, offset: int) -> Iterator[Found]:
        while rows := self.read(offset, _MOST_ROWS):
            whole = [row for row in rows if not row.damage]
            offset = rows[-1].end
            yield Found(whole, len(whole), sum(row.end - row.offset for row in rows if row.damage), 0, offset)

    def _wanted_in(self, group: int, offset: int, wanted: Wanted, columns: list[str]) -> Iterator[Found]:
        first = self._bounds[group]
        for batch in self._batches(group, columns):
            end = first + len(batch)
            if end > offset:
                mask = wanted.mask(pa.Table.from_batches([batch]))
                numbers = np.flatnonzero(mask)
                rows = [
                    row for number in numbers if first + number >= offset for row in self.read(first + int(number), 1)
                ]
                yield Found(rows, end - max(first, offset), 0, 0, end)
            first = end


def _row(batch: pa.RecordBatch, number: int, first: int) -> Row:
    names = batch.schema.names
    values = {name: _value(batch.column(i)[number]) for i, name in enumerate(names)}
    return Row(first + number, first + number + 1, values)


def _value(scalar: pa.Scalar) -> object:
    """A value as a Python object; of long texts and bytes, the beginning."""
    kind = scalar.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if scalar.is_valid and (is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        buffer = scalar.as_buffer()
        if buffer.size > _LONGEST_VALUE:
            start = buffer.slice(0, _LONGEST_VALUE).to_pybytes()
            cut = f"… (cut: {buffer.size:,} bytes)"
            return start.decode("utf-8", "ignore") + cut if is_text else start
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, UnicodeDecodeError) as error:  # a time beyond Python's, text that is not UTF-8
        return f"(cannot be shown: {error})"
