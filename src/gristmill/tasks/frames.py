"""pandas frames to Arrow tables and back. The only file of `tasks` that knows pandas, and it never imports it first.

A column pandas can hold and Arrow cannot (a list here, a number there) becomes a JSON column.
"""

from typing import TYPE_CHECKING, TypeGuard, Union

import msgspec
import numpy as np
import pyarrow as pa

from gristmill.tasks.json_text import JSON_MARK, is_json, loads

if TYPE_CHECKING:
    import pandas as pd


def is_frame(data: object) -> TypeGuard["pd.DataFrame"]:
    """Whether this is a pandas frame; asks the type's name, because importing pandas costs as much as all the rest."""
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
    """The column as Arrow would have it, or None if it cannot hold the very values."""
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
