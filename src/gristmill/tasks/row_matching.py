"""Which rows of an old table the rows of a new one are, and which columns did not change on the way.

Where a row was before is a guess (the frame's index, the same number of rows, a column of ids). The guess cannot do
harm: a column counts as unchanged only if its values at the guessed rows equal the old ones. Tables only; lines are
not known here.
"""

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from gristmill.tasks.json_lines import is_json, loads

_MAX_KEY_COLUMNS = 3  # how many columns are tried as ids, most distinct values first
_CANNOT_COMPARE = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError)


class RowMatch(msgspec.Struct, frozen=True):
    """`rows[i]` is where new row i was (None: where it is now); `unchanged` are columns of the old type."""

    rows: pa.Array | None
    unchanged: dict[str, pa.ChunkedArray]


def match_rows(old: pa.Table, new: pa.Table, labels: pa.Array | None) -> RowMatch | None:
    """Return the guess that leaves most columns of `new` unchanged, or None if none leaves any.

    Both tables have the same columns; `labels` is the index of the frame `new` was made from.
    """
    best: RowMatch | None = None
    for rows in _guesses(old, new, labels):
        unchanged = _unchanged(old if rows is None else old.take(rows), new)
        if unchanged and (best is None or len(unchanged) > len(best.unchanged)):
            best = RowMatch(rows, unchanged)
        if len(unchanged) == len(new.column_names):
            break
    return best


def _guesses(old: pa.Table, new: pa.Table, labels: pa.Array | None) -> Iterator[pa.Array | None]:
    import pyarrow.compute as pc  # 30 ms, for those who need to guess

    if labels is not None and len(labels) == len(new):
        limits = pc.min_max(labels).as_py()
        if limits["min"] is not None and limits["min"] >= 0 and limits["max"] < len(old):
            yield labels
    if len(old) == len(new):
        yield None
    for name in _key_columns(old, new):
        try:
            values = old.column(name).combine_chunks()
            rows = pc.index_in(new.column(name).cast(values.type), value_set=values)
        except _CANNOT_COMPARE:
            continue
        if not rows.null_count:
            yield rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows


def _key_columns(old: pa.Table, new: pa.Table) -> list[str]:
    """Columns that may tell rows apart: the most distinct values first."""
    import pyarrow.compute as pc

    def is_key(name: str) -> bool:
        kind = old.schema.field(name).type
        return (pa.types.is_string(kind) or pa.types.is_integer(kind)) and _is_detour(kind, new.schema.field(name).type)

    counted = [(-pc.count_distinct(old.column(name)).as_py(), name) for name in new.column_names if is_key(name)]
    return [name for _, name in sorted(counted)[:_MAX_KEY_COLUMNS]]


def _unchanged(old: pa.Table, new: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: old.column(name) for name in new.column_names if _is_same(old.select([name]), new.select([name]))}


def _is_same(old: pa.Table, new: pa.Table) -> bool:
    before, after = old.column(0), new.column(0)
    if after.null_count == len(after):
        return bool(before.null_count == len(before))
    if is_json(old.schema.field(0)) or is_json(new.schema.field(0)):
        return _same_values(_values(old), _values(new))
    if before.type != after.type:
        if not _is_detour(before.type, after.type):
            return False
        try:
            after = after.cast(before.type)
        except _CANNOT_COMPARE:
            return False
    if pa.types.is_floating(before.type):
        # NaN is not equal to itself; its bits are.
        bits = pa.int64() if before.type == pa.float64() else pa.int32()
        if before.type.bit_width != bits.bit_width:
            return False
        before, after = _view(before, bits), _view(after, bits)
    return bool(before.equals(after))


def _view(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)


def _is_detour(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether pandas may have turned one type into the other as a side effect."""
    if pa.types.is_nested(before):
        return bool(before.id == after.id)
    return any(is_family(before) and is_family(after) for is_family in (_is_text, _is_number))


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_floating))


def _values(column: pa.Table) -> list[object]:
    """The values as Python has them; JSON text, which pandas is given parsed, is parsed."""
    values: list[object] = column.column(0).to_pylist()
    if not is_json(column.schema.field(0)):
        return values
    return [None if text is None else loads(str(text)) for text in values]


def _same_values(before: list[object], after: list[object]) -> bool:
    """1, 1.0 and true are equal in Python and three things in JSON; repr tells them apart."""
    return all(repr(a) == repr(b) for a, b in zip(before, after, strict=True))
