"""`TableBatch`: items that are the rows of an Arrow table, with columns of any type, bytes included.

Every method returns a new batch of the same class with everything else a subclass may hold, and leaves the old one as
it was. A table travels between processes as an Arrow stream that is written once and mapped (`serialization.py`).

A batch that was given a pandas frame gives that very frame back as `data`, to be changed in place as many stages do:
the frame is lent. Until the stage returns, every question to the batch is answered from the frame as it is at that
moment; then the frame is taken back (`settle`), and the rows are Arrow again.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeGuard, Union

import msgspec
import numpy as np
import pyarrow as pa

from gristmill.errors import StageError, nearest
from gristmill.tasks.batch import Batch, ItemRecord
from gristmill.tasks.joining import concat_tables
from gristmill.tasks.json_lines import JSON_MARK, is_json, loads
from gristmill.tasks.task import StagePerfStats
from gristmill.tasks.text_columns import count_true, filter_table

if TYPE_CHECKING:
    import pandas as pd

# pandas frames to Arrow tables and back. The only file of `tasks` that knows pandas, and it never imports it first.
#
# A column pandas can hold and Arrow cannot (a list here, a number there) becomes a JSON column.


def is_frame(data: object) -> TypeGuard["pd.DataFrame"]:
    """Whether this is a pandas frame; by the type's name, because importing pandas costs as much as all the rest."""
    return any(
        base.__name__ == "DataFrame" and base.__module__.partition(".")[0] == "pandas" for base in type(data).__mro__
    )


def row_labels(data: Union[pa.Table, "pd.DataFrame"]) -> pa.Array | None:
    """Return a frame's index if it could be row numbers of the batch the frame was made from."""
    if not is_frame(data) or data.index.nlevels != 1 or data.index.dtype.kind not in "iu" or not data.index.is_unique:
        return None
    return pa.array(np.asarray(data.index), pa.int64())


def table_from_frame(frame: "pd.DataFrame") -> pa.Table:
    """Convert the columns; the index is not data."""
    fields, columns = [], []
    for name, series in frame.items():
        column = _inferred(series)
        field = None if column is None else pa.field(str(name), column.type)
        if column is None:
            missing = series.isna().to_numpy()
            texts = [None if m else msgspec.json.encode(v).decode() for v, m in zip(series, missing, strict=True)]
            column, field = pa.array(texts, pa.string()), pa.field(str(name), pa.string(), metadata=JSON_MARK)
        fields.append(field)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _inferred(series: "pd.Series") -> pa.Array | None:
    """The column as Arrow would have it, or None if Arrow cannot hold exactly these values."""
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return None
    if pa.types.is_nested(column.type):
        # A struct gives every object the keys of all the others.
        pairs = zip(column.to_pylist(), series.to_numpy(), strict=True)
        if any(after != before for after, before in pairs if isinstance(before, dict | list)):
            return None
    return column


def table_to_frame(table: pa.Table, num_rows: int) -> "pd.DataFrame":
    """Convert all columns; nested and JSON values become Python objects, not numpy arrays and not text."""
    import pandas as pd

    objects = [field.name for field in table.schema if pa.types.is_nested(field.type) or is_json(field)]
    if not objects:
        frame = table.to_pandas()
        return frame if len(table.column_names) else pd.DataFrame(index=pd.RangeIndex(num_rows))
    flat = table.drop_columns(objects)
    frame = flat.to_pandas() if flat.num_columns else pd.DataFrame(index=pd.RangeIndex(num_rows))
    for name in objects:
        values = table.column(name).to_pylist()
        if is_json(table.schema.field(name)):
            values = [None if text is None else loads(text) for text in values]
        frame[name] = pd.Series(values, index=frame.index, dtype=object)
    ordered: pd.DataFrame = frame[table.column_names]
    return ordered


Rows: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[int] | Sequence[bool]"
TableLike: TypeAlias = Union[pa.Table, "pd.DataFrame"]

EMPTY_TABLE = pa.Table.from_arrays([], schema=pa.schema([]))  # pa.table would import pandas, for 0.2 s
_encoder = msgspec.json.Encoder(enc_hook=str, decimal_format="number")

# Arrow holds what Python does not: dates beyond the year 9999, text that is not UTF-8, two fields of one name.
UNWRITABLE = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, pa.ArrowException)


class TableBatch(Batch[pa.Table]):
    """A batch of rows, kept as an Arrow table. One that was given a pandas frame gives a frame back as `data`."""

    _rows: ClassVar[tuple[str, ...]] = ("_table", "_num_rows")  # the attributes that say which rows there are
    _gives_frames: bool = False  # what `data` is: a frame, or an Arrow table
    _lent: "pd.DataFrame | None" = None  # a frame that may be changing
    _before: Mapping[str, object] = MappingProxyType({})  # what `_rows` were when it was lent

    def __init__(
        self,
        dataset_name: str,
        data: TableLike,
        _stage_perf: list[StagePerfStats] | None = None,
        _metadata: dict[str, object] | None = None,
        *,
        task_id: str = "",
    ) -> None:
        self.dataset_name = dataset_name
        self._stage_perf = [] if _stage_perf is None else _stage_perf
        self._metadata = {} if _metadata is None else _metadata
        self.task_id = task_id
        if is_frame(data):
            _check_names([str(name) for name in data.columns], type(self).__name__)
            self._lend(data)
        else:
            self._set_given(data)

    def _set_given(self, data: TableLike) -> None:
        self._set_table(_as_table(data, type(self).__name__))
        if is_frame(data):
            self._num_rows = len(data)
            self._gives_frames = True

    def _set_table(self, table: pa.Table) -> None:
        self._table = table
        self._num_rows = table.num_rows  # to Arrow, a table without columns has no rows

    # What it holds

    @property
    def data(self) -> pa.Table:
        """All columns: as a frame, which may be changed in place, if the batch was made from one; else as a table."""
        if not self._gives_frames:
            return self.to_pyarrow()
        if self._lent is None:
            self._lend(self.to_pandas())
        return self._lent

    @data.setter
    def data(self, data: TableLike) -> None:
        if is_frame(data):
            self._lend(data)
        else:
            self.__dict__.update(self.with_data(data).__dict__)

    # A frame that is lent

    def _lend(self, frame: "pd.DataFrame") -> None:
        """Put the rows aside: while they are gone, `__getattr__` answers for them."""
        rows = {name: self.__dict__.pop(name) for name in self._rows if name in self.__dict__}
        self.__dict__.setdefault("_before", rows)
        self.__dict__ |= {"_lent": frame, "_gives_frames": True}

    def __getattr__(self, name: str) -> Any:
        frame = self.__dict__.get("_lent")
        if frame is None or name not in self._rows:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return len(frame) if name == "_num_rows" else getattr(self._as_it_is(frame), name)

    def _as_it_is(self, frame: "pd.DataFrame") -> Self:
        """A batch with the rows the frame has now."""
        now = object.__new__(type(self))
        now.__dict__.update({key: value for key, value in self.__dict__.items() if key not in {"_lent", "_before"}})
        now.__dict__.update(self._before)
        if self._before:
            return now.with_data(frame)  # what did not change keeps what it came from
        now._set_given(frame)
        return now

    def settle(self) -> None:
        """Take a frame back: what is done to it from now on does not change the batch."""
        if self._lent is not None:
            now = self._as_it_is(self._lent)
            del self.__dict__["_lent"], self.__dict__["_before"]
            self.__dict__.update({name: now.__dict__[name] for name in self._rows})

    @property
    def num_items(self) -> int:
        return self._num_rows

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)

    def to_pyarrow(self) -> pa.Table:
        """Return all columns as a table."""
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return all columns as a pandas frame; nested and JSON values are Python objects."""
        return table_to_frame(self.to_pyarrow(), self._num_rows)

    def get_columns(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._table.column_names)

    def has_column(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self._table.column_names

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column."""
        if name not in self._table.column_names:
            raise self._no_column(name)
        return self._table.column(name)

    def field(self, name: str) -> pa.Field:
        """Return a column's name, type and metadata."""
        if name not in self._table.column_names:
            raise self._no_column(name)
        return self._table.schema.field(name)

    def item(self, row: int) -> ItemRecord:
        """A row in words: its `id`, the columns of text or numbers, and as payload the column of bytes."""
        one = self.to_pyarrow().slice(row, 1)
        binary = [field.name for field in one.schema if is_bytes(field.type)]
        payload = one.column(binary[0])[0].as_buffer() if binary else None
        shown = {name: _shown(one.column(name)) for name in one.column_names if name not in binary}
        name = shown.get("id", "")
        text = _encoder.encode(shown).decode() if shown else ""
        return ItemRecord("" if name is None else str(name), ", ".join(self.sources()), text=text, payload=payload)

    def _no_column(self, name: str) -> StageError:
        columns = self.get_columns()
        who = f"{type(self).__name__} {self.task_id or self.dataset_name!r}"
        return StageError(f"{who}: expected a column {name!r}; got {columns}{nearest(name, columns)}")

    # Other columns

    def with_data(self, data: TableLike) -> Self:
        """Return a batch of the same origin with other data."""
        new = self._copy()
        new._set_given(data)
        return new

    def with_column(self, name: str, values: pa.Array | pa.ChunkedArray, field: pa.Field | None = None) -> Self:
        """Return a batch with one column added or replaced."""
        if len(values) != self._num_rows:
            who = f"{type(self).__name__}.with_column {name!r}"
            raise StageError(f"{who}: expected {self._num_rows} values; got {len(values)}")
        new = self._copy()
        field = pa.field(name, values.type) if field is None else field.with_name(name)
        if name in self._table.column_names:
            new._table = self._table.set_column(self._table.column_names.index(name), field, values)
        else:
            new._table = append_column(self._table, field, values)
        return new

    def drop_columns(self, names: Sequence[str]) -> Self:
        """Return a batch without these columns; names it does not have are ignored."""
        new = self._copy()
        new._table = self._table.drop_columns([name for name in self._table.column_names if name in names])
        return new

    def select(self, columns: Sequence[str]) -> Self:
        """Return a batch with these columns, in this order."""
        for name in columns:
            if name not in self._table.column_names:
                raise self._no_column(name)
        new = self._copy()
        new._table = self._table.select(list(columns))
        return new

    # Other rows

    def filter(self, mask: Rows) -> Self:
        """Return the rows where the mask is true."""
        mask = self._mask(mask)
        new = self._copy()
        new._num_rows = count_true(mask)
        if new._num_rows < self._num_rows and self._table.num_columns:
            new._table = filter_table(self._table, mask)
        return new

    def _mask(self, mask: Rows) -> pa.Array:
        mask = row_array(mask, pa.bool_())
        if len(mask) != self._num_rows:
            who = f"{type(self).__name__}.filter"
            raise StageError(f"{who}: expected a mask of {self._num_rows} values; got {len(mask)}")
        return mask

    def take(self, rows: Rows) -> Self:
        """Return the rows at these positions, in their order."""
        indices = self._positions(rows)
        new = self._copy()
        new._table = self._table.take(indices) if self._table.num_columns else self._table
        new._num_rows = len(indices)
        return new

    def _positions(self, rows: Rows) -> pa.Array:
        if isinstance(rows, pa.Array | pa.ChunkedArray):
            is_mask = rows.type == pa.bool_()
        else:
            rows = rows if isinstance(rows, np.ndarray) or not len(rows) else np.asarray(rows)
            is_mask = isinstance(rows, np.ndarray) and rows.dtype == np.bool_
        if is_mask:
            who = f"{type(self).__name__}.take"
            raise StageError(f"{who}: expected positions of rows; got a mask of {len(rows)} values, which filter takes")
        return row_array(rows, pa.int64())

    def slice(self, offset: int = 0, length: int | None = None) -> Self:
        """Return consecutive rows, without copying."""
        new = self._copy()
        new._num_rows = max(0, self._num_rows - offset)
        new._num_rows = new._num_rows if length is None else min(new._num_rows, length)
        new._table = self._table.slice(offset, new._num_rows)
        return new

    @classmethod
    def concat(cls, batches: Sequence[Self]) -> Self:
        """Join batches end to end. The first one gives the class, the name and the history."""
        if not batches:
            raise StageError(f"{cls.__name__}.concat: expected at least one batch; got none")
        new = batches[0]._copy()
        if len(batches) > 1:
            new._set_table(concat_tables([batch.to_pyarrow() for batch in batches]))
            new._num_rows = sum(batch._num_rows for batch in batches)
        return new

    # Copies and parts

    def to_parts(self) -> tuple[dict[str, object], pa.Table]:
        """Return everything but the rows, and the rows as one table."""
        self.settle()
        return {key: value for key, value in self.__dict__.items() if key != "_table"}, self._table

    @classmethod
    def from_parts(cls, state: dict[str, object], table: pa.Table) -> Self:
        """Undo `to_parts`."""
        batch = cls.__new__(cls)
        batch._set_table(table)
        batch.__dict__.update(state)
        return batch

    def __reduce__(self) -> tuple[object, ...]:
        state, table = self.to_parts()
        if table.get_total_buffer_size() <= 4 * table.nbytes + 4096:
            return _from_table, (type(self), state, table)
        # Arrow pickles a slice with everything it was cut from; a stream holds the rows only.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return _from_stream, (type(self), state, sink.getvalue())

    def __copy__(self) -> Self:
        new = super().__copy__()
        new.settle()  # two batches must not share a frame that one of them changes
        return new

    def _copy(self) -> Self:
        new = self.__copy__()
        new._stage_perf, new._metadata = list(self._stage_perf), dict(self._metadata)
        return new

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(dataset_name={self.dataset_name!r}, task_id={self.task_id!r}, num_items={self._num_rows})"

    def _repr_html_(self) -> str:
        """The first rows, cut, for notebooks."""
        from gristmill.tasks.notebook_view import MOST_COLUMNS, MOST_ROWS, table_html  # notebooks only

        shown = self.slice(0, MOST_ROWS).to_pyarrow()
        names = shown.column_names[:MOST_COLUMNS]
        rows = ([row[name] for name in names] for row in shown.select(names).to_pylist())
        more = self._num_rows - len(shown)
        return table_html(repr(self), names, rows, below=f"and {more:,} more rows" if more > 0 else "")


def _from_table(kind: type[TableBatch], state: dict[str, object], table: pa.Table) -> TableBatch:
    return kind.from_parts(state, table)


def _from_stream(kind: type[TableBatch], state: dict[str, object], stream: pa.Buffer) -> TableBatch:
    return kind.from_parts(state, pa.ipc.open_stream(stream).read_all())


def _shown(value: pa.ChunkedArray) -> object:
    """The one value of a column as JSON has it; None where Python or JSON has no such value."""
    try:
        shown = value[0].as_py()
        _encoder.encode(shown)
    except UNWRITABLE:
        return None
    return shown


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values of this type are bytes, and not text."""
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _as_table(data: TableLike, who: str) -> pa.Table:
    if isinstance(data, pa.Table):
        table = data
    elif is_frame(data):
        table = table_from_frame(data)
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    else:
        raise StageError(f"{who}: expected a pyarrow.Table or a pandas.DataFrame; got {type(data).__name__}")
    _check_names(table.column_names, who)
    return table


def _check_names(names: Sequence[str], who: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StageError(f"{who}: expected column names to differ; got {twice!r} {names.count(twice)} times")


def append_column(table: pa.Table, field: pa.Field, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the table with one more column. To Arrow, a table without columns has no rows."""
    if table.num_columns:
        return table.append_column(field, column)
    return pa.Table.from_arrays([column], schema=pa.schema([field], metadata=table.schema.metadata))


def row_array(values: Rows, kind: pa.DataType) -> pa.Array:
    """Return positions or a mask as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()  # lines picked by a chunked array would come out chunked
    if isinstance(values, pa.Array):
        return values
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "bi" or not len(numbers):
        return pa.array(values, kind)
    # Through a buffer: pa.array would import pandas, half a second out of some document's deadline.
    plain = np.packbits(numbers, bitorder="little") if kind == pa.bool_() else numbers.astype(np.int64)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(plain)])
