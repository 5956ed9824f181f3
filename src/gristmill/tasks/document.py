"""`DocumentBatch`: documents as an Arrow table, with the JSON lines they came from where there are any.

Columns of a batch read from JSONL are parsed when they are first asked for, and rows can be dropped, taken and joined
without parsing anything. All that is known about JSON lines is here; any other table is a `TableBatch`. How a new table
finds the rows of an old batch again is in `row_matching`; no file is read or written here.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.tasks.batch import ItemRecord
from gristmill.tasks.joining import concat_tables, join_lines
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.row_matching import match_rows
from gristmill.tasks.table import (
    EMPTY_TABLE,
    UNWRITABLE,
    Rows,
    TableBatch,
    TableLike,
    append_column,
    row_labels,
)
from gristmill.tasks.task import Task
from gristmill.tasks.text_columns import count_true, filter_array, filter_table, kept_bytes, kept_pieces

D = TypeVar("D", bound="DocumentBatch")

LEAST_KEPT = 0.75  # of the bytes of lines: while at least this share is kept, the rest may stay in memory with it
BETWEEN_STAGES = "_gristmill_"  # begins the names of columns that travel between our own stages and are not the user's
_DATA = ("_table", "_held", "_pending", "_labels")  # what does not travel as an attribute
_NO_LINES = pa.nulls(0, pa.large_binary())  # pa.array would import pandas, for 0.2 s


class DocumentBatch(TableBatch):
    """A batch of documents.

    `data` may be given as a pandas frame, and is then a frame whenever it is asked for; inside it is an Arrow table. A
    field missing in a JSON line is a null in its column.
    """

    _rows = ("_table", "_num_rows", "_held", "_pending", "_complete", "_order", "_labels")
    _labels: pa.Array | None

    def _set_given(self, data: TableLike) -> None:
        super()._set_given(data)
        self._labels = row_labels(data)

    @classmethod
    def from_lines(cls, dataset_name: str, lines: JsonLines, *, fields: Sequence[str] | None = None) -> Self:
        """Make a batch of JSON lines; with `fields` it has these columns only, null where no line has them."""
        batch = cls(dataset_name, EMPTY_TABLE)
        batch._lines = lines
        batch._num_rows = len(lines)
        batch._complete = False
        return batch if fields is None else batch.select(fields)

    def _set_table(self, table: pa.Table) -> None:
        super()._set_table(table)  # own columns and the parsed ones
        self._lines = None
        self._complete = True  # every live field of the lines is in the table
        self._order: tuple[str, ...] | None = None  # None: as in the lines, then as in the table
        self._labels = None  # a frame's index, which may say which rows of an older batch these are

    @property
    def _lines(self) -> JsonLines | None:
        """The lines of the rows that are left; those of dropped rows are taken out at the first use."""
        if self._held is not None and self._pending is not None:
            self._lines = self._held.with_values(filter_array(self._held.values, self._pending))
        return self._held

    @_lines.setter
    def _lines(self, lines: JsonLines | None) -> None:
        self._held = lines
        self._pending: pa.Array | None = None  # which of the held lines count, where some do not

    # What it holds

    @property
    def lines(self) -> JsonLines | None:
        """The lines the rows were read from, and which columns they still hold for."""
        return self._lines

    @property
    def nbytes(self) -> int:
        if self._held is None:
            return int(self._table.nbytes)
        held = self._held.nbytes if self._pending is None else kept_bytes(self._held.values, self._pending)
        return int(self._table.nbytes) + held

    @property
    def content_bytes(self) -> int:
        """The bytes of the lines, and of columns that the lines do not hold."""
        if self._held is None:
            return int(self._table.nbytes)
        held = self._held.nbytes if self._pending is None else kept_bytes(self._held.values, self._pending)
        return self._added_bytes() + held

    def _added_bytes(self) -> int:
        """The bytes of columns that were added or changed; what is only parsed is in the lines already."""
        if self._held is None:
            return int(self._table.nbytes)
        names = [name for name in self._table.column_names if not self._held.is_live(name)]
        return sum(int(self._table.column(name).nbytes) for name in names)

    def item_bytes(self) -> NDArray[np.int64]:
        """About how much of `content_bytes` is each document's: its line, and a share of what was added."""
        added, lines = self._added_bytes() // max(1, self._num_rows), self._lines
        return np.full(self._num_rows, added) if lines is None else np.diff(lines.offsets()) + added

    def bytes_of(self, mask: Rows, count: int) -> int:
        """The bytes of the lines, and a share of what was added."""
        rows = self._mask(mask)
        if self._held is None or self._pending is not None or rows.null_count:
            return super().bytes_of(mask, count)
        added = self._added_bytes() * count // max(1, self._num_rows)
        return added + kept_bytes(self._held.values, rows)

    def to_pyarrow(self) -> pa.Table:
        """Return all columns as a table."""
        if not self._complete and self._lines is not None:
            names, parsed = self._lines.parse_all(but=self._table.column_names)
            self._table = _append_all(self._table, parsed)
            self._order = self._order or tuple(self._ordered(names))
            self._complete = True
        if self._order is not None and tuple(self._table.column_names) != self._order:
            for name in set(self._order).difference(self._table.column_names):
                self._table = append_column(self._table, pa.field(name, pa.string()), _null_strings(self._num_rows))
            self._table = self._table.select(self._order)
        return self._table

    def get_columns(self) -> list[str]:
        """Return the names of all columns."""
        if self._order is not None:
            return list(self._order)
        if self._complete or self._lines is None:
            return list(self._table.column_names)
        return self._ordered(self._lines.all_names())

    def _ordered(self, first: Iterable[str]) -> list[str]:
        """Names as the lines have them, then what was added."""
        own = dict.fromkeys(self._table.column_names)
        live = self._lines.is_live if self._lines is not None else own.__contains__
        return list(dict.fromkeys([*(name for name in first if name in own or live(name)), *own]))

    def has_column(self, name: str) -> bool:
        """Whether any document has this field, or the table this column."""
        if name in self._table.column_names:
            return True
        if self._lines is None or self._complete or not self._lines.is_live(name):
            return False
        return self._lines.has_any([name])

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column, parsing no other.

        In a batch of JSON lines every field exists: it is null where no document has it.
        """
        if name in self._table.column_names:
            return self._table.column(name)
        if self._lines is None or not self._lines.is_live(name):
            raise self._no_column(name)
        parsed = None if self._complete else self._lines.parse(name)
        if parsed is None:
            return _null_strings(self._num_rows)
        self._table = append_column(self._table, *parsed)
        return parsed[1]

    def field(self, name: str) -> pa.Field:
        """Return a column's name, type and metadata; parses the column."""
        column = self.column(name)
        known = name in self._table.column_names
        return self._table.schema.field(name) if known else pa.field(name, column.type)

    def untouched_lines(self) -> Iterator[memoryview] | None:
        """All lines in pieces, if they say all there is to say: dropped ones are left out and nothing is parsed."""
        if self._held is None or not self._held.is_whole:
            return None
        return iter([self._held.data()]) if self._pending is None else kept_pieces(self._held.values, self._pending)

    def parsed_columns(self) -> list[str]:
        """Return the columns that are there as Arrow data already; the others are still JSON text."""
        return list(self._table.column_names)

    # Other columns

    def with_data(self, data: TableLike) -> Self:
        """Return a batch of the same origin with other data; columns that did not change keep their JSON text."""
        return relink(self, super().with_data(data))

    def with_column(self, name: str, values: pa.Array | pa.ChunkedArray, field: pa.Field | None = None) -> Self:
        new = super().with_column(name, values, field)
        if self._order is not None and name not in self._table.column_names:
            new._order = (*self._order, name)
        if self._lines is not None:
            new._lines = self._lines.without([name])
        return new

    def drop_columns(self, names: Sequence[str]) -> Self:
        new = super().drop_columns(names)
        new._order = None if self._order is None else tuple(name for name in self._order if name not in names)
        if self._lines is not None:
            new._lines = self._lines.without(names)
        return new

    def select(self, columns: Sequence[str]) -> Self:
        """Return a batch with these columns, in this order; in a batch of JSON lines a missing one is null."""
        for name in columns:
            if name not in self._table.column_names and (self._lines is None or not self._lines.is_live(name)):
                raise self._no_column(name)
        new = self._copy()
        new._table = self._table.select([name for name in columns if name in self._table.column_names])
        new._order = tuple(columns)
        if self._lines is not None:
            new._lines = self._lines.only(columns)
        return new

    # Other rows

    def filter(self, mask: Rows) -> Self:
        mask = self._mask(mask)
        num_rows = count_true(mask)
        if num_rows == self._num_rows:
            return self._copy()
        table = filter_table(self._table, mask) if self._table.num_columns else self._table
        lines = self._lines
        if lines is None or mask.null_count or kept_bytes(lines.values, mask) < LEAST_KEPT * lines.nbytes:
            return self._with_rows(num_rows, table, None if lines is None else filter_array(lines.values, mask))
        new = self._copy()
        new._table, new._num_rows, new._pending = table, num_rows, mask
        return new

    def take(self, rows: Rows) -> Self:
        indices = self._positions(rows)
        table = self._table.take(indices) if self._table.num_columns else self._table
        return self._with_rows(len(indices), table, None if self._lines is None else self._lines.values.take(indices))

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        new = super().slice(offset, length)
        new._lines = None if self._lines is None else self._lines.slice(offset, new._num_rows)
        return new

    @classmethod
    def concat(cls, batches: Sequence[Self]) -> Self:
        lines = join_lines([batch._lines for batch in batches]) if len(batches) > 1 else None
        if lines is None:
            return super().concat(batches)
        # A column parsed in one part must be parsed in all, or its type would depend on what was asked for.
        wanted = list(dict.fromkeys(name for batch in batches for name in batch._table.column_names))
        new = batches[0]._copy()
        new._lines, new._num_rows = lines, len(lines)
        new._table = concat_tables([_columns(batch, wanted) for batch in batches])
        new._complete = all(batch._complete for batch in batches)
        return new

    def to_parts(self) -> tuple[dict[str, object], pa.Table]:
        """Return everything but the rows, and the rows: lines first, if there are any, then what is parsed."""
        self.settle()
        state = {key: value for key, value in self.__dict__.items() if key not in _DATA}
        table, lines = self._table, self._lines
        if lines is not None:
            state["lines"] = (lines.gone, lines.kept)
            schema = pa.schema([pa.field("lines", pa.large_binary()), *table.schema], metadata=table.schema.metadata)
            table = pa.Table.from_arrays([pa.chunked_array([lines.values]), *table.columns], schema=schema)
        return state, table

    @classmethod
    def from_parts(cls, state: dict[str, object], table: pa.Table) -> Self:
        standing = state.pop("lines", None)
        batch = super().from_parts(state, table)
        if isinstance(standing, tuple):
            column = table.column(0)
            values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([_NO_LINES, *column.chunks])
            batch._lines = JsonLines(values, *standing)
            batch._table = table.remove_column(0) if table.num_columns > 1 else _no_columns(table)
        return batch

    def _with_rows(self, num_rows: int, table: pa.Table, values: pa.Array | None) -> Self:
        new = self._copy()
        new._table, new._num_rows = table, num_rows
        new._lines = None if self._lines is None else self._lines.with_values(values)
        return new

    def __copy__(self) -> Self:
        new = super().__copy__()
        new._labels = None  # the copy will soon have other rows
        return new

    # What becomes of it

    def descended_from(self, parent: Task[Any], *, new_items: bool = False) -> Task[pa.Table]:
        """Find the lines of the parent's rows again, where a stage has made its result from scratch."""
        if not isinstance(parent, DocumentBatch) or self._held is not None:
            return super().descended_from(parent, new_items=new_items)
        self.inherit(parent)
        return self if new_items or parent._held is None else relink(parent, self)

    def item(self, row: int) -> ItemRecord:
        """A document as one JSON line without the newline, as far as it can be written: what broke a stage may not."""
        one, name, text = self.slice(row, 1)._of_users(), "", ""
        with contextlib.suppress(*UNWRITABLE):
            name = str(one.column("id")[0].as_py()) if one.has_column("id") else ""
        with contextlib.suppress(*UNWRITABLE):
            text = b"".join(one._encoded()).decode("utf-8", "replace").rstrip("\n")
        return ItemRecord(name, ", ".join(self.sources()), text=text)

    def json_lines(self, notes: Mapping[str, Sequence[object]]) -> list[bytes]:
        """Return the documents as JSON lines with more fields; of one that cannot be written, these fields alone."""
        noted = self._of_users()
        for name, values in notes.items():
            noted = noted.with_column(name, pa.array(list(values)))
        with contextlib.suppress(*UNWRITABLE):
            return noted._encoded()
        return [line for row in range(self._num_rows) for line in noted.slice(row, 1)._encoded_or_only(list(notes))]

    def _of_users(self) -> Self:
        """The batch without what travels between our own stages, for readers of rejects and quarantine."""
        between = [name for name in self._table.column_names if name.startswith(BETWEEN_STAGES)]
        return self.drop_columns(between) if between else self

    def _encoded_or_only(self, names: list[str]) -> list[bytes]:
        with contextlib.suppress(*UNWRITABLE):
            return self._encoded()
        return self.select(names)._encoded()

    def _encoded(self) -> list[bytes]:
        from gristmill.tasks.json_encoding import encode_lines

        return [bytes(chunk) for chunk in encode_lines(self)]


def relink(old: DocumentBatch, new: D) -> D:
    """Give `new` the JSON lines of `old` for every column that did not change; return `new` itself if none is left.

    For a stage that made its result from scratch: `DocumentBatch(dataset_name=..., data=frame)`.
    """
    lines, table = old._lines, new._table
    if lines is None or new._lines is not None or not len(lines):
        return new
    shared = [name for name in table.column_names if lines.is_live(name) and old.has_column(name)]
    match = match_rows(_columns(old, shared), table.select(shared), new._labels) if shared else None
    if match is None:
        return new
    linked = new._copy()
    for name, column in match.unchanged.items():
        if column.null_count == len(column):
            continue
        # The old type: pandas may have made doubles of integers on the way.
        linked._table = linked._table.set_column(table.column_names.index(name), old._table.schema.field(name), column)
    if match.rows is not None:
        lines = lines.with_values(lines.values.take(match.rows))
    if all(name in match.unchanged for name in old.get_columns() if lines.is_live(name)):
        lines = lines.without(name for name in table.column_names if name not in match.unchanged)
    else:
        lines = lines.only(match.unchanged)
    linked._lines, linked._order = lines, tuple(table.column_names)
    return linked


def _columns(batch: DocumentBatch, names: Sequence[str]) -> pa.Table:
    schema = pa.schema([batch.field(name) for name in names], metadata=batch._table.schema.metadata)
    return pa.Table.from_arrays([batch.column(name) for name in names], schema=schema)


def _no_columns(table: pa.Table) -> pa.Table:
    return EMPTY_TABLE.replace_schema_metadata(table.schema.metadata)


def _append_all(table: pa.Table, columns: Sequence[tuple[pa.Field, pa.ChunkedArray]]) -> pa.Table:
    """All at once: each column added to a table makes a new table, which thousands of columns would notice."""
    if not columns:
        return table
    fields = [*table.schema, *(field for field, _ in columns)]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *(column for _, column in columns)], schema=schema)


def _null_strings(num_rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(num_rows, pa.string())])
