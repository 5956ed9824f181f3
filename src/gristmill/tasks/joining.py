"""Tables and lines end to end: what `DocumentBatch.concat` is made of.

Types are inferred per batch, so a column may be an integer here and a double or an object there. It is joined as the
type both fit in without loss, and as a JSON column where there is none.
"""

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from gristmill.tasks.json_lines import JSON_MARK, JsonLines, is_json


def join_lines(parts: Sequence[JsonLines | None]) -> JsonLines | None:
    """Join lines whose fields are live alike; None if they are not, or if some rows have no lines."""
    lines = [part for part in parts if part is not None]
    if len(lines) != len(parts) or len({(part.gone, part.kept) for part in lines}) != 1:
        return None
    return lines[0].with_values(pa.concat_arrays([part.values for part in lines]))


def concat_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Join tables by column name; a column missing in one is null there."""
    try:
        if len({tuple(is_json(field) for field in table.schema) for table in tables}) == 1:
            return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    columns = [_concat_column(name, tables) for name in names]
    return pa.Table.from_arrays([c for _, c in columns], schema=pa.schema([f for f, _ in columns]))


def _concat_column(name: str, tables: Sequence[pa.Table]) -> tuple[pa.Field, pa.ChunkedArray]:
    parts = [table.select([name]) if name in table.column_names else None for table in tables]
    fields = [part.schema.field(0) for part in parts if part is not None]
    if not any(map(is_json, fields)):
        try:
            kind = pa.unify_schemas([pa.schema([f]) for f in fields], promote_options="permissive").field(0)
            columns = [
                part.column(0).cast(kind.type)
                if part is not None
                else pa.chunked_array([pa.nulls(len(table), kind.type)])
                for part, table in zip(parts, tables, strict=True)
            ]
            if not pa.types.is_string(kind.type) or all(
                pa.types.is_string(f.type) or pa.types.is_null(f.type) for f in fields
            ):
                return kind, pa.chunked_array([chunk for column in columns for chunk in column.chunks], kind.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            pass
    chunks = [
        pa.nulls(len(t), pa.string()) if p is None else _json_texts(p) for p, t in zip(parts, tables, strict=True)
    ]
    return pa.field(name, pa.string(), metadata=JSON_MARK), pa.chunked_array(chunks, pa.string())


def _json_texts(table: pa.Table) -> pa.Array:
    values = table.column(0).to_pylist()
    if is_json(table.schema.field(0)):
        return pa.array(values, pa.string())
    return pa.array([None if v is None else msgspec.json.encode(v).decode() for v in values], pa.string())
