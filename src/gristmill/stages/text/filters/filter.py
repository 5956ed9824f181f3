"""`Filter`: drop documents by a column that is already there."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.per_document import as_list, keep_scores, name_of, split_nulls
from gristmill.tasks import DocumentBatch

Judge = Callable[[object], bool] | DocumentFilter[object]

NULL_SCORE = "null_score"


@dataclass
class Filter(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Keep the documents whose value in `filter_field` every filter or function keeps.

    A function is given None where the value is missing; a filter object never keeps such a document.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    filter_fn: Judge | list[Judge]
    filter_field: str | list[str]
    invert: bool | list[bool] = False
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for judge in self._judges():
            if not callable(judge) and not isinstance(judge, DocumentFilter):
                raise ConfigError(f"Filter: expected filter_fn to be a DocumentFilter or a function; got {judge!r}")
        self._fields()
        self._inverts()
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return f"filter_{'_and_'.join(dict.fromkeys(self._fields()))}"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._fields()))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def process(self, task: DocumentBatch) -> DocumentBatch:
        for judge, field, invert in zip(self._judges(), self._fields(), self._inverts(), strict=True):
            values = task.column(field)
            kept = keep_scores(judge, values, invert=invert)
            self._report(task, judge, values, ~kept, invert=invert)
            task = task.filter(from_bools(kept))
        return task

    def _report(
        self, batch: DocumentBatch, judge: Judge, values: pa.ChunkedArray, dropped: NDArray[np.bool_], *, invert: bool
    ) -> None:
        if not isinstance(judge, DocumentFilter):
            self.context.drop(batch, from_bools(dropped), reason=name_of(judge), values=values)
            return
        refused, without_value = split_nulls(dropped, values)
        threshold = judge.describe_threshold(invert=invert)
        self.context.drop(batch, refused, reason=judge.name, values=values, threshold=threshold)
        self.context.drop(batch, without_value, reason=NULL_SCORE, threshold=threshold)

    def _judges(self) -> list[Judge]:
        return list(self.filter_fn) if isinstance(self.filter_fn, list | tuple) else [self.filter_fn]

    def _fields(self) -> list[str]:
        return as_list(self.filter_field, len(self._judges()), who="Filter: filter_field")

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._judges()), who="Filter: invert")
