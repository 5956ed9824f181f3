"""Running user code over a column, one document after another, for `Score`, `Filter` and `ScoreFilter`."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null
from gristmill.stages.text.filters.document_filter import DocumentFilter

T = TypeVar("T")

AnyFilter = DocumentFilter[object]
NULL_TEXT = "null_text"  # why a document without text was dropped, whichever filter refused it


def as_list(value: T | Sequence[T], length: int, *, who: str) -> list[T]:
    """Return one value per filter: a single value counts for all of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * length
    if len(value) != length:
        raise ConfigError(f"{who}: expected one value, or one for each of {length} filters; got {list(value)!r}")
    return list(value)


def score_texts(judge: AnyFilter | Callable[[str], object], texts: pa.ChunkedArray) -> pa.Array:
    """Score every text; a null is scored as the empty text."""
    function = judge.score_document if isinstance(judge, DocumentFilter) else judge
    score_type = judge.score_type if isinstance(judge, DocumentFilter) else None
    scores = [function("" if text is None else text) for text in texts.to_pylist()]
    if score_type in (pa.int64(), pa.float64()) and None not in scores:
        numbers: NDArray[np.int64] | NDArray[np.float64] = np.array(scores, score_type.to_pandas_dtype())
        return from_numbers(numbers)
    return pa.array(scores, type=score_type)


def keep_scores(judge: AnyFilter | Callable[[object], bool], scores: pa.Array, *, invert: bool) -> NDArray[np.bool_]:
    """Return true for the rows to keep. A null score says nothing, so a filter object never keeps it."""
    if isinstance(judge, DocumentFilter):
        kept = [score is not None and bool(judge.keep_document(score)) != invert for score in scores.to_pylist()]
    else:
        kept = [bool(judge(score)) != invert for score in scores.to_pylist()]
    return np.array(kept, np.bool_)


def split_nulls(dropped: NDArray[np.bool_], column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Split dropped rows into masks of those that had a value and those that had none."""
    null = is_null(column)
    return from_bools(dropped & ~null), from_bools(dropped & null)


def name_of(judge: object) -> str:
    """A filter's name, or a function's."""
    if isinstance(judge, DocumentFilter):
        return judge.name
    name = getattr(judge, "__name__", type(judge).__name__)
    return "function" if name == "<lambda>" else str(name)


def join_names(judges: Sequence[object]) -> str:
    """One name for several filters: the first one's, and how many follow."""
    first = name_of(judges[0])
    return first if len(judges) == 1 else f"{first}_and_{len(judges) - 1}_more"
