"""`ColumnFilter`: a filter that can also score all documents of a column at once, from counts made by compiled code.

Both forms say the same of every text; tests hold them to it. The form for one document is the definition.
"""

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.statistics.statistic import Statistic

S = TypeVar("S", int, float)

Counts = Mapping[Statistic, NDArray[np.int64]]
Scores = NDArray[np.int64] | NDArray[np.float64]


class ColumnFilter(DocumentFilter[S]):
    """A filter on numbers that are found by counting."""

    def statistics(self) -> tuple[Statistic, ...]:
        """Return what the scores are computed from; nothing if these parameters take a document at a time."""
        return ()

    def score_counts(self, counts: Counts) -> Scores:
        """Return one score per document, of the type `score_type` says."""
        raise NotImplementedError(f"{type(self).__name__}: a column filter must define score_counts")

    def keep_column(self, scores: Scores) -> NDArray[np.bool_]:
        """Return true for the scores that are kept."""
        low, high = self.bounds()
        kept = np.ones(len(scores), np.bool_)
        if low is not None:
            kept &= scores >= low
        if high is not None:
            kept &= scores <= high
        return kept


def shares(part: NDArray[np.int64], whole: NDArray[np.int64], *, of_nothing: float) -> NDArray[np.float64]:
    """Return part / whole, and a fixed value where there is nothing to have a part of."""
    result = np.full(len(part), of_nothing)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def has_column_form(judge: object) -> bool:
    """Whether a judge can score columns: a filter of ours with such parameters, not somebody's variant of it."""
    if not isinstance(judge, ColumnFilter) or not type(judge).__module__.startswith("gristmill."):
        return False
    return "score_document" not in vars(judge) and "keep_document" not in vars(judge) and bool(judge.statistics())
