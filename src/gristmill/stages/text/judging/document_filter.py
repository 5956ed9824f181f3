"""`DocumentFilter`: what a user subclasses to judge documents one at a time.

A filter is a measure (`score_document`) and a rule on it (`bounds` or `keep_document`), and knows nothing of batches,
columns or what becomes of a document it refuses: `ScoreFilter`, `Score` and `Filter` see to that.

`ColumnFilter` can also score all documents of a column at once, from counts made by compiled code. Both forms give
every text the same score; tests hold them to it. The form for one document is the definition.

As for scores as columns: a number, a bool or a label is one column. A score of several parts (`score_type` is a struct:
a language and how sure the model is) is a column for each part, of the part's type: the first has the name that was
asked for, the others have that name with their own behind it, as in `language` and `language_score`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null
from gristmill.stages.base import snake_case
from gristmill.stages.text.judging import rule
from gristmill.stages.text.judging.statistics import Statistic
from gristmill.tasks.text_columns import from_texts

if TYPE_CHECKING:
    from gristmill.stages.text.judging.rule import Numbers


S = TypeVar("S")  # what the filter measures: a number, a bool, a label
N = TypeVar("N", int, float)

Bounds = tuple[float | None, float | None]
Counts = Mapping[Statistic, NDArray[np.int64]]
Scores = NDArray[np.int64] | NDArray[np.float64]


class DocumentFilter(Generic[S]):
    """Measure a document, then keep it or not.

    Write `score_document`, and either `bounds` (kept inside them, both ends included) or `keep_document`.

    `measure`      what the score is called in rejects: "words" gives the threshold "50 ≤ words ≤ 100000"
    `amount`       "tokens" if scores add up to an amount of the run, which is then known before and behind the filter
    `score_type`   the Arrow type of a score column; found from the scores if None, but an empty batch has none. With
                   a struct, a score is a dict, and each of its parts becomes a column (see `score_fields`)

    A filter with a model may define `model_check_or_download` (once per machine), `load_model` and `load_tokenizer`
    (once in every worker).
    """

    measure: ClassVar[str] = "score"
    amount: ClassVar[str | None] = None
    score_type: ClassVar[pa.DataType | None] = None

    def score_document(self, text: str) -> S:
        """Measure one document."""
        raise NotImplementedError(f"{type(self).__name__}: a filter must define score_document")

    def score_documents(self, texts: Sequence[str]) -> Sequence[S]:
        """Measure several documents; for a filter that is quicker with many at a time."""
        return [self.score_document(text) for text in texts]

    def keep_document(self, score: S) -> bool:
        """Return True to keep a document with this score."""
        bounds = rule.Bounds(*self.bounds())
        if bounds.is_open:
            raise NotImplementedError(f"{type(self).__name__}: a filter must define keep_document or bounds")
        return bounds.holds(cast("float", score))

    def bounds(self) -> Bounds:
        """Return (least, greatest) score that is kept; None where there is no limit."""
        return None, None

    def for_any_threshold(self) -> "DocumentFilter[S]":
        """Return a filter whose scores serve every threshold: this one, unless it stops measuring early."""
        return self

    def check_ready(self) -> None:
        """Raise ConfigError if a file or a package is missing. Called where the pipeline is planned, not when the
        filter is made: a pipeline may be built where the model is not.
        """

    def model_check_or_download(self) -> None:
        """Make sure that the files the filter needs are on this machine."""

    def load_model(self) -> None:
        """Load what `score_document` works with."""

    def load_tokenizer(self) -> None:
        """Load the tokenizer, if there is one."""

    @property
    def name(self) -> str:
        """The name in reasons and metrics: the class name in snake_case without "Filter", unless one is set."""
        given = cast("str | None", vars(self).get("_name"))
        return given or snake_case(type(self).__name__.removesuffix("Filter"))

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    def describe_threshold(self, *, invert: bool = False) -> str | None:
        """Return the condition a kept document meets, or None if the filter does not say.

        >>> WordCountFilter(min_words=50).describe_threshold()
        '50 ≤ words ≤ 100000'
        """
        bounds = rule.Bounds(*self.bounds())
        if bounds.is_open:
            return None
        condition = bounds.describe(self.measure)
        return f"not ({condition})" if invert else condition


class ColumnFilter(DocumentFilter[N]):
    """A filter on numbers that are found by counting."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return what the scores are computed from; nothing if these parameters need a document at a time."""
        return ()

    def score_counts(self, counts: Counts) -> Scores:
        """Return one score per document, of the type `score_type` says."""
        raise NotImplementedError(f"{type(self).__name__}: a column filter must define score_counts")

    def keep_column(self, scores: Scores) -> NDArray[np.bool_]:
        """Return true for the scores that are kept."""
        return rule.Bounds(*self.bounds()).hold(scores)


def has_column_form(judge: object) -> bool:
    """Whether a judge can score columns: a filter of ours with such parameters, not a user's variant of it."""
    if not isinstance(judge, ColumnFilter) or not type(judge).__module__.startswith("gristmill."):
        return False
    return "score_document" not in vars(judge) and "keep_document" not in vars(judge) and bool(judge.statistics())


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
