"""`Step`: one filter or function of a stage, with the columns it reads and adds."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gristmill.stages.text.filters.document_filter import DocumentFilter

Judge = DocumentFilter[object] | Callable[..., object]

Kind = Enum("Kind", "SCORE FILTER SCORE_FILTER")


@dataclass(frozen=True)
class Step:
    """What `kind` says is done with `judge`, for the documents that the steps before it left."""

    kind: Kind
    judge: Judge
    reads: str  # the column of texts, or with FILTER of scores
    adds: str | None  # the column the scores are kept in
    invert: bool = False
