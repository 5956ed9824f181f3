"""What is measured on documents, in one shape for filters, functions and rule sets: a value for each that is left.

A number, a bool or a label is one column. A score of several parts (`score_type` is a struct: a language and how sure
the model is) is a column for each part, typed as what it is: the first has the name that was asked for, the others have
that name with their own behind it, as in `language` and `language_score`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null
from gristmill.stages.text.judging.document_filter import ColumnFilter, DocumentFilter, has_column_form
from gristmill.stages.text.judging.rule import Column, Numbers, RuleSet
from gristmill.stages.text.judging.sieve import Sieve
from gristmill.stages.text.judging.statistics import Statistic
from gristmill.tasks.text_columns import from_texts

AnyFilter = DocumentFilter[Any]
Judging = AnyFilter | Callable[..., object]  # a filter, or a function in the place of one
Values: TypeAlias = "Numbers | pa.Array"

NULL_TEXT = "null_text"  # why a document without text was dropped, whichever filter or rule refused it
NULL_SCORE = "null_score"  # the same for a document without a value in the column a filter reads


class Measure(Protocol):
    """A value for each document that is left."""

    @property
    def null_reason(self) -> str | None:
        """Why a document is dropped that has nothing to measure; None if that is nothing special."""
        ...

    def statistics(self) -> tuple[Statistic, ...]:
        """Return what is counted for it."""
        ...

    def values(self, documents: Sieve, field: str) -> Values:
        """Measure the documents that are left, in a column of theirs."""
        ...


@dataclass(frozen=True)
class ScoreOfText:
    """What a filter or a function says of a text: from counts where it can be, else one document after another."""

    judge: Judging
    null_reason: ClassVar[str | None] = NULL_TEXT

    def statistics(self) -> tuple[Statistic, ...]:
        return self.judge.statistics() if has_column_form(self.judge) and isinstance(self.judge, ColumnFilter) else ()

    def values(self, documents: Sieve, field: str) -> Values:
        wanted = self.statistics()
        texts = documents.texts(field) if wanted and documents.is_worth_counting(field) else None
        if texts is None or not isinstance(self.judge, ColumnFilter):
            return score_texts(self.judge, documents.column(field))
        counts = texts.counts(documents.wanted(), wanted)
        left = {found: values[documents.rows] for found, values in zip(wanted, counts, strict=True)}
        return self.judge.score_counts(left)


@dataclass(frozen=True)
class ValueInColumn:
    """What a column holds already; for a filter whose scores have several parts, what several columns hold."""

    judge: Judging

    @property
    def null_reason(self) -> str | None:
        return NULL_SCORE if isinstance(self.judge, DocumentFilter) else None

    def statistics(self) -> tuple[Statistic, ...]:
        return ()

    def values(self, documents: Sieve, field: str) -> Values:
        return read_scores(documents.column, self.judge, field)


@dataclass(frozen=True)
class MeasureOfSet:
    """One of the measures of a rule set; several of them may have been taken together."""

    rules: RuleSet
    name: str
    null_reason: ClassVar[str | None] = NULL_TEXT

    def statistics(self) -> tuple[Statistic, ...]:
        return self.rules.statistics()

    def values(self, documents: Sieve, field: str) -> Values:
        texts = documents.texts_for_rules(field)
        known: dict[str, Column] = texts.remember(("measures", id(self.rules)), dict)
        if self.name not in known:
            self.rules.measure(self.name, texts, documents.wanted(), known)
        return known[self.name][documents.rows]


def score_texts(judge: Judging, texts: pa.ChunkedArray) -> pa.Array:
    """Score every text by itself; a null is scored as the empty text."""
    known = ["" if text is None else text for text in texts.to_pylist()]
    if isinstance(judge, DocumentFilter):
        return to_scores(judge.score_documents(known), judge.score_type)
    return to_scores([judge(text) for text in known], None)


def keep_scores(judge: Judging, scores: Values, *, invert: bool) -> NDArray[np.bool_]:
    """Return true for the rows to keep. A null score says nothing, so a filter object never keeps it."""
    if isinstance(judge, ColumnFilter) and isinstance(scores, np.ndarray):
        return judge.keep_column(scores) ^ invert
    each = to_arrow(scores).to_pylist()
    if isinstance(judge, DocumentFilter):
        return np.array([score is not None and bool(judge.keep_document(score)) != invert for score in each], np.bool_)
    return np.array([bool(judge(score)) != invert for score in each], np.bool_)


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
