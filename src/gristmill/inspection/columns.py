"""Columns as an expression and a table see them: a name, a kind, and values as an Arrow array.

There are few kinds on purpose: a condition is checked against them before anything is read, and JSON has no types but
these. A column inside a record is named with a dot (`meta.language`), unless a column has that very name.
Values of a JSON column that are not of its kind become null here; how many there were is counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gristmill.inspection.arrow_values import flags, lists, numbers, texts

Kind: TypeAlias = Literal["number", "text", "flag", "list", "record", "time", "bytes", "unknown"]
Values: TypeAlias = Mapping[str, object]
_DEEPEST = 4  # records inside records whose fields are offered as columns


def kind_of_type(kind: pa.DataType) -> Kind:
    """The kind of an Arrow type."""
    if pa.types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    tests: tuple[tuple[object, Kind], ...] = (
        (pa.types.is_boolean(kind), "flag"),
        (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind), "number"),
        (_is_text(kind), "text"),
        (pa.types.is_struct(kind), "record"),
        (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind), "list"),
        (pa.types.is_timestamp(kind) or pa.types.is_date(kind), "time"),
        (pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind), "bytes"),
    )
    return next((name for holds, name in tests if holds), "unknown")


def kind_of_value(value: object) -> Kind:
    """The kind of a JSON value; null is unknown."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "list"
    return "record" if isinstance(value, dict) else "unknown"


def kinds_of_schema(schema: pa.Schema) -> dict[str, Kind]:
    """The columns of a Parquet file and the fields of its records."""
    kinds: dict[str, Kind] = {}
    for field in schema:
        kinds |= dict(_kinds_of_field(field.name, field.type, _DEEPEST))
    return {**kinds, **{field.name: kind_of_type(field.type) for field in schema}}


def _kinds_of_field(name: str, kind: pa.DataType, deepest: int) -> Iterator[tuple[str, Kind]]:
    yield name, kind_of_type(kind)
    if pa.types.is_struct(kind) and deepest:
        for field in kind:
            yield from _kinds_of_field(f"{name}.{field.name}", field.type, deepest - 1)


def kinds_of_rows(rows: Sequence[Values]) -> dict[str, Kind]:
    """The columns some rows of JSON have; of a column with several kinds, the one most of its values have."""
    counts: dict[str, dict[Kind, int]] = {}
    for row in rows:
        for name, value in _leaves(row, "", _DEEPEST):
            of_name = counts.setdefault(name, {})
            kind = kind_of_value(value)
            of_name[kind] = of_name.get(kind, 0) + 1
    return {name: _most_frequent(found) for name, found in counts.items()}


def _leaves(row: Values, prefix: str, deepest: int) -> Iterator[tuple[str, object]]:
    for name, value in row.items():
        yield prefix + name, value
        if isinstance(value, dict) and deepest:
            yield from _leaves(value, f"{prefix}{name}.", deepest - 1)


def _most_frequent(counts: Mapping[Kind, int]) -> Kind:
    known: list[Kind] = [kind for kind in counts if kind != "unknown"]
    return max(known, key=lambda kind: counts[kind], default="unknown")


def of_row(row: Values, name: str) -> object:
    """The value of a column in a row of JSON, also inside a record; None if it is not there."""
    if name in row:
        return row[name]
    outer, dot, inner = name.partition(".")
    while dot:
        value = row.get(outer)
        if isinstance(value, dict):
            return of_row(value, inner)
        more, dot, inner = inner.partition(".")
        outer = f"{outer}.{more}"
    return None


def of_table(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of a table, also inside a record; its dictionary, if it has one, is resolved."""
    known = table.schema.names
    if name in known:
        return _resolved(table.column(known.index(name)))
    outer = max((n for n in known if name.startswith(f"{n}.")), key=len)
    column = table.column(known.index(outer))
    inner = name[len(outer) + 1 :]
    while inner:
        fields = [field.name for field in column.type]
        field = max((n for n in fields if f"{inner}.".startswith(f"{n}.")), key=len)
        column, inner = pc.struct_field(column, [fields.index(field)]), inner[len(field) + 1 :]
    return _resolved(column)


def _resolved(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    return column.cast(pa.large_string()) if _is_text(column.type) else column


def column_of(values: Sequence[object], kind: Kind) -> tuple[pa.Array, int]:
    """JSON values as an Arrow array of a kind, and how many had another kind and became null."""
    if kind == "unknown":
        kind = _most_frequent(_counted(values))
    fitting = [value if kind_of_value(value) == kind else None for value in values]
    others = sum(f is None and v is not None for f, v in zip(fitting, values, strict=True))
    made: pa.Array
    if kind == "number":
        made = numbers(fitting)  # type: ignore[arg-type]  # all of them are of the kind, or None
    elif kind == "text":
        made = texts(fitting)  # type: ignore[arg-type]
    elif kind == "flag":
        made = flags(fitting)  # type: ignore[arg-type]
    elif kind == "list":  # of any values: only its length and the texts and numbers in it are asked for
        made = lists([None if value is None else [_item(item) for item in value] for value in fitting])  # type: ignore[attr-defined]
    else:
        made = pa.nulls(len(fitting))
    return made, others


def _item(value: object) -> str | None:
    """An element of a JSON list as a text, so that lists of mixed elements have one type."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _counted(values: Sequence[object]) -> dict[Kind, int]:
    counts: dict[Kind, int] = {}
    for value in values:
        counts[kind_of_value(value)] = counts.get(kind_of_value(value), 0) + 1
    return counts


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
