"""Running user code over a column, one document after another, for `Score`, `Filter` and `ScoreFilter`."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.score_columns import to_scores

AnyFilter = DocumentFilter[object]
NULL_TEXT = "null_text"  # why a document without text was dropped, whichever filter refused it
NULL_SCORE = "null_score"  # the same for a document without a value in the column a filter reads


def score_texts(judge: AnyFilter | Callable[[str], object], texts: pa.ChunkedArray) -> pa.Array:
    """Score every text; a null is scored as the empty text."""
    known = ["" if text is None else text for text in texts.to_pylist()]
    if isinstance(judge, DocumentFilter):
        return to_scores(judge.score_documents(known), judge.score_type)
    return to_scores([judge(text) for text in known], None)


def keep_scores(judge: AnyFilter | Callable[[object], object], scores: pa.Array, *, invert: bool) -> NDArray[np.bool_]:
    """Return true for the rows to keep. A null score says nothing, so a filter object never keeps it."""
    if isinstance(judge, DocumentFilter):
        kept = [score is not None and bool(judge.keep_document(score)) != invert for score in scores.to_pylist()]
    else:
        kept = [bool(judge(score)) != invert for score in scores.to_pylist()]
    return np.array(kept, np.bool_)
