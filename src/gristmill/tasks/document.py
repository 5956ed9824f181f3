"""`DocumentBatch`: documents as an Arrow table, with the JSON lines they came from where there are any.

Columns of a batch read from JSONL are parsed when they are first asked for, and rows can be dropped, taken and joined
without parsing anything. Batches are values: every method returns a new batch and leaves the old one as it was. How a
new table finds the rows of an old batch again is in `row_matching`; no file is read or written here.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
import pyarrow as pa

from gristmill.errors import StageError, nearest
from gristmill.tasks.frames import is_frame, row_labels, table_from_frame, table_to_frame
from gristmill.tasks.joining import concat_tables, join_lines
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.row_filtering import count_true, filter_array, filter_table, kept_bytes, kept_pieces
from gristmill.tasks.row_matching import match_rows
from gristmill.tasks.task import StagePerfStats, Task

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[int] | Sequence[bool]"


LEAST_KEPT = 0.75  # of the bytes of lines: as long as so many stay, the others may stay in memory with them
_DATA = ("_table", "_held", "_pending", "_labels")
_NO_LINES = pa.nulls(0, pa.large_binary())  # pa.array would import pandas, for 0.2 s
_EMPTY_TABLE = pa.Table.from_arrays([], schema=pa.schema([]))  # pa.table would import it too


class DocumentBatch(Task[pa.Table]):
    """A batch of documents.

    `data` may be given as a pandas frame and is kept as an Arrow table. A field missing in a JSON line is a null in
    its column.
    """

    def __init__(
        self,
        dataset_name: str,
        data: Union[pa.Table, "pd.DataFrame"],
        _stage_perf: list[StagePerfStats] | None = None,
        _metadata: dict[str, object] | None = None,
    ) -> None:
        self.dataset_name = dataset_name
        self._stage_perf = [] if _stage_perf is None else _stage_perf
        self._metadata = {} if _metadata is None else _metadata
        self.task_id = ""
        self._set_table(_as_table(data))
        self._labels: pa.Array | None = row_labels(data)
        if is_frame(data):
            self._num_rows = len(data)

    @classmethod
    def from_lines(cls, dataset_name: str, lines: JsonLines, *, fields: Sequence[str] | None = None) -> "DocumentBatch":
        """Make a batch of JSON lines; with `fields` it has these columns only, null where no line has them."""
        batch = cls(dataset_name, _EMPTY_TABLE)
        batch._lines = lines
        batch._num_rows = len(lines)
        batch._complete = False
        return batch if fields is None else batch.select(fields)

    def _set_table(self, table: pa.Table, num_rows: int | None = None) -> None:
        self._table = table  # own columns and the parsed ones
        self._num_rows = table.num_rows if num_rows is None else num_rows
        self._lines = None
        self._complete = True  # every live field of the lines is in the table
        self._order: tuple[str, ...] | None = None  # None: as in the lines, then as in the table
        self._labels = None  # a frame's index, which may say which rows of an older batch these are

    @property
    def _lines(self) -> JsonLines | None:
        """The lines of the rows there are; those of dropped rows are taken out when somebody first asks."""
        if self._held is not None and self._pending is not None:
            self._lines = self._held.with_values(filter_array(self._held.values, self._pending))
        return self._held

    @_lines.setter
    def _lines(self, lines: JsonLines | None) -> None:
        self._held = lines
        self._pending: pa.Array | None = None  # which of the held lines count, where some do not

    # What it holds

    @property
    def data(self) -> pa.Table:
        """All columns."""
        return self.to_pyarrow()

    @data.setter
    def data(self, data: Union[pa.Table, "pd.DataFrame"]) -> None:
        changed = self.with_data(data)
        self.__dict__.update(changed.__dict__)

    @property
    def lines(self) -> JsonLines | None:
        """The lines the rows were read from, and which columns they still speak for."""
        return self._lines

    @property
    def num_items(self) -> int:
        return self._num_rows

    @property
    def nbytes(self) -> int:
        if self._held is None:
            return int(self._table.nbytes)
        held = self._held.nbytes if self._pending is None else kept_bytes(self._held.values, self._pending)
        return int(self._table.nbytes) + held

    def to_pyarrow(self) -> pa.Table:
        """Return all columns as a table."""
        if not self._complete and self._lines is not None:
            names, parsed = self._lines.parse_all(but=self._table.column_names)
            self._table = _append_all(self._table, parsed)
            self._order = self._order or tuple(self._ordered(names))
            self._complete = True
        if self._order is not None and tuple(self._table.column_names) != self._order:
            for name in set(self._order).difference(self._table.column_names):
                self._table = _append(self._table, pa.field(name, pa.string()), _null_strings(self._num_rows))
            self._table = self._table.select(self._order)
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return all columns as a pandas frame; nested and JSON values are Python objects."""
        return table_to_frame(self.to_pyarrow(), self._num_rows)

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
        """Whether some document has this field, or the table this column."""
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
        self._table = _append(self._table, *parsed)
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

    def _no_column(self, name: str) -> StageError:
        columns = self.get_columns()
        who = f"DocumentBatch {self.task_id or self.dataset_name!r}"
        return StageError(f"{who}: expected a column {name!r}; got {columns}{nearest(name, columns)}")

    # Other columns

    def with_data(self, data: Union[pa.Table, "pd.DataFrame"]) -> "DocumentBatch":
        """Return a batch of the same origin with other data; columns that did not change keep their JSON text."""
        return self._descendant(relink(self, DocumentBatch(self.dataset_name, data)))

    def with_column(
        self, name: str, values: pa.Array | pa.ChunkedArray, field: pa.Field | None = None
    ) -> "DocumentBatch":
        """Return a batch with one column added or replaced."""
        if len(values) != self._num_rows:
            raise StageError(f"DocumentBatch.with_column {name!r}: expected {self._num_rows} values; got {len(values)}")
        new = self._copy()
        field = pa.field(name, values.type) if field is None else field.with_name(name)
        if name in self._table.column_names:
            new._table = self._table.set_column(self._table.column_names.index(name), field, values)
        else:
            new._table = _append(self._table, field, values)
            new._order = None if self._order is None else (*self._order, name)
        if self._lines is not None:
            new._lines = self._lines.without([name])
        return new

    def drop_columns(self, names: Sequence[str]) -> "DocumentBatch":
        """Return a batch without these columns; names it does not have are ignored."""
        new = self._copy()
        new._table = self._table.drop_columns([name for name in self._table.column_names if name in names])
        new._order = None if self._order is None else tuple(name for name in self._order if name not in names)
        if self._lines is not None:
            new._lines = self._lines.without(names)
        return new

    def select(self, columns: Sequence[str]) -> "DocumentBatch":
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

    def filter(self, mask: Rows) -> "DocumentBatch":
        """Return the rows where the mask is true."""
        mask = _array(mask, pa.bool_())
        if len(mask) != self._num_rows:
            raise StageError(f"DocumentBatch.filter: expected a mask of {self._num_rows} values; got {len(mask)}")
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

    def take(self, indices: Rows) -> "DocumentBatch":
        """Return the rows at these positions, in their order."""
        indices = _array(indices, pa.int64())
        table = self._table.take(indices) if self._table.num_columns else self._table
        return self._with_rows(len(indices), table, None if self._lines is None else self._lines.values.take(indices))

    def slice(self, offset: int = 0, length: int | None = None) -> "DocumentBatch":
        """Return consecutive rows, without copying."""
        num_rows = max(0, self._num_rows - offset)
        num_rows = num_rows if length is None else min(num_rows, length)
        new = self._copy()
        new._table, new._num_rows = self._table.slice(offset, num_rows), num_rows
        new._lines = None if self._lines is None else self._lines.slice(offset, num_rows)
        return new

    @staticmethod
    def concat(batches: Sequence["DocumentBatch"]) -> "DocumentBatch":
        """Join batches end to end. The first one gives the name and the history."""
        if not batches:
            raise StageError("DocumentBatch.concat: expected at least one batch; got none")
        first = batches[0]
        if len(batches) == 1:
            return first._copy()
        num_rows = sum(batch._num_rows for batch in batches)
        lines = join_lines([batch._lines for batch in batches])
        if lines is None:
            new = DocumentBatch(first.dataset_name, concat_tables([batch.to_pyarrow() for batch in batches]))
            new._num_rows = num_rows
            return first._descendant(new)
        # A column parsed in one part must be parsed in all, or its type would depend on who asked for what.
        wanted = list(dict.fromkeys(name for batch in batches for name in batch._table.column_names))
        new = DocumentBatch.from_lines(first.dataset_name, lines)
        new._table = concat_tables([_columns(batch, wanted) for batch in batches])
        new._order, new._complete = first._order, all(batch._complete for batch in batches)
        return first._descendant(new)

    def to_parts(self) -> tuple[dict[str, object], pa.Table]:
        """Return everything but the data, and the data: lines first, if there are any, then what is parsed."""
        state = {key: value for key, value in self.__dict__.items() if key not in _DATA}
        table, lines = self._table, self._lines
        if lines is not None:
            state["lines"] = (lines.gone, lines.kept)
            schema = pa.schema([pa.field("lines", pa.large_binary()), *table.schema], metadata=table.schema.metadata)
            table = pa.Table.from_arrays([pa.chunked_array([lines.values]), *table.columns], schema=schema)
        return state, table

    @classmethod
    def from_parts(cls, state: dict[str, object], table: pa.Table) -> "DocumentBatch":
        """Undo `to_parts`."""
        standing = state.pop("lines", None)
        batch = cls.__new__(cls)
        batch._set_table(table)
        batch.__dict__.update(state)
        if isinstance(standing, tuple):
            column = table.column(0)
            values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([_NO_LINES, *column.chunks])
            batch._lines = JsonLines(values, *standing)
            batch._table = table.remove_column(0) if table.num_columns > 1 else _no_columns(table)
        return batch

    def __reduce__(self) -> tuple[object, ...]:
        state, table = self.to_parts()
        if table.get_total_buffer_size() <= 4 * table.nbytes + 4096:
            return DocumentBatch.from_parts, (state, table)
        # Arrow pickles a slice with all of what it was cut from; a stream holds the rows only.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return _from_stream, (state, sink.getvalue())

    def _with_rows(self, num_rows: int, table: pa.Table, values: pa.Array | None) -> "DocumentBatch":
        new = self._copy()
        new._table, new._num_rows = table, num_rows
        new._lines = None if self._lines is None else self._lines.with_values(values)
        return new

    def _copy(self) -> "DocumentBatch":
        return self._descendant(copy.copy(self))

    def _descendant(self, new: "DocumentBatch") -> "DocumentBatch":
        """Give a batch this one's name and history, in containers of its own."""
        new.dataset_name, new.task_id = self.dataset_name, self.task_id
        new._stage_perf, new._metadata = list(self._stage_perf), dict(self._metadata)
        return new

    def __repr__(self) -> str:
        return (
            f"DocumentBatch(dataset_name={self.dataset_name!r}, task_id={self.task_id!r}, num_items={self._num_rows})"
        )


def relink(old: DocumentBatch, new: DocumentBatch) -> DocumentBatch:
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


def _from_stream(state: dict[str, object], stream: pa.Buffer) -> DocumentBatch:
    return DocumentBatch.from_parts(state, pa.ipc.open_stream(stream).read_all())


def _columns(batch: DocumentBatch, names: Sequence[str]) -> pa.Table:
    schema = pa.schema([batch.field(name) for name in names], metadata=batch._table.schema.metadata)
    return pa.Table.from_arrays([batch.column(name) for name in names], schema=schema)


def _as_table(data: Union[pa.Table, "pd.DataFrame"]) -> pa.Table:
    if isinstance(data, pa.Table):
        table = data
    elif is_frame(data):
        table = table_from_frame(data)
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    else:
        raise StageError(f"DocumentBatch: expected a pyarrow.Table or a pandas.DataFrame; got {type(data).__name__}")
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StageError(f"DocumentBatch: expected column names to differ; got {twice!r} {names.count(twice)} times")
    return table


def _no_columns(table: pa.Table) -> pa.Table:
    return _EMPTY_TABLE.replace_schema_metadata(table.schema.metadata)


def _append(table: pa.Table, field: pa.Field, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Arrow takes a table without columns for a table without rows."""
    if table.num_columns:
        return table.append_column(field, column)
    return pa.Table.from_arrays([column], schema=pa.schema([field], metadata=table.schema.metadata))


def _append_all(table: pa.Table, columns: Sequence[tuple[pa.Field, pa.ChunkedArray]]) -> pa.Table:
    """All at once: a table is made anew for each column that is added to it, which thousands would notice."""
    if not columns:
        return table
    fields = [*table.schema, *(field for field, _ in columns)]
    schema = pa.schema(fields, metadata=table.schema.metadata)
    return pa.Table.from_arrays([*table.columns, *(column for _, column in columns)], schema=schema)


def _null_strings(num_rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(num_rows, pa.string())])


def _array(values: Rows, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()  # lines picked by a chunked array would come out chunked
    if isinstance(values, pa.Array):
        return values
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "bi" or not len(numbers):
        return pa.array(values, kind)
    # Through a buffer: pa.array would import pandas, half a second within some document's deadline.
    plain = np.packbits(numbers, bitorder="little") if kind == pa.bool_() else numbers.astype(np.int64)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(plain)])
