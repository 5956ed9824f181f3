"""Scores as columns: from what filters return to Arrow, and from columns back.

A number, a bool or a label is one column. A score of several parts (`score_type` is a struct: a language and how sure
the model is) is a column for each part, typed as what it is: the first has the name that was asked for, the others
have that name with their own behind it, as in `language` and `language_score`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from gristmill.stages.text.judging.rule import Numbers

Values: TypeAlias = "Numbers | pa.Array"


def to_scores(values: Sequence[object], kind: pa.DataType | None) -> pa.Array:
    """Return scores as an Arrow array; without `pa.array`, which imports pandas, where the type allows."""
    if kind is not None and pa.types.is_struct(kind):
        parts = cast("Sequence[dict[str, object]]", values)
        fields = _parts_of(kind)
        columns = [to_scores([part[field.name] for part in parts], field.type) for field in fields]
        return pa.StructArray.from_arrays(columns, fields=fields)
    if kind in (pa.int64(), pa.float64()) and None not in values:
        return from_numbers(np.array(values, np.int64) if kind == pa.int64() else np.array(values, np.float64))
    if kind == pa.string():
        return from_texts(cast("Sequence[str | None]", values))
    return pa.array(values, type=kind)


def to_arrow(values: Values) -> pa.Array:
    """Return values as an Arrow array."""
    return from_numbers(values) if isinstance(values, np.ndarray) else values


def score_fields(judge: object, field: str) -> list[str]:
    """Return the columns the scores are kept in, if they are asked for as `field`."""
    kind = judge.score_type if isinstance(judge, DocumentFilter) else None
    if kind is None or not pa.types.is_struct(kind):
        return [field]
    return [field, *(f"{field}_{part.name}" for part in _parts_of(kind)[1:])]


def score_parts(judge: object, field: str, scores: pa.Array) -> list[tuple[str, pa.Array]]:
    """Return the columns of the scores, with their names."""
    names = score_fields(judge, field)
    return list(zip(names, scores.flatten() if len(names) > 1 else [scores], strict=True))


def read_scores(column: Callable[[str], pa.ChunkedArray], judge: object, field: str) -> pa.Array | pa.ChunkedArray:
    """Return the scores whose parts are columns of these names; null where the first part is."""
    names = score_fields(judge, field)
    columns = [column(name) for name in names]
    if len(names) == 1 or not isinstance(judge, DocumentFilter) or judge.score_type is None:
        return columns[0]
    whole = [pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0) for column in columns]
    return pa.StructArray.from_arrays(whole, fields=_parts_of(judge.score_type), mask=from_bools(is_null(columns[0])))


def _parts_of(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]
