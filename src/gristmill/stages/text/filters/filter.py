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
from gristmill.stages.text.filters.filter_setup import set_up_node, set_up_worker, wants_node_setup
from gristmill.stages.text.filters.per_document import keep_scores, split_nulls
from gristmill.stages.text.filters.score_columns import read_scores, score_fields
from gristmill.stages.text.names import name_of
from gristmill.stages.text.one_for_each import as_list
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
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
        fields = zip(self._judges(), self._fields(), strict=True)
        return ["data"], list(dict.fromkeys(name for judge, field in fields for name in score_fields(judge, field)))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def wants_node_setup(self) -> bool:
        return wants_node_setup(self._judges())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        set_up_node(self._judges())

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        set_up_worker(self._judges())

    def process(self, task: DocumentBatch) -> DocumentBatch:
        for judge, field, invert in zip(self._judges(), self._fields(), self._inverts(), strict=True):
            values = read_scores(task, judge, field)
            kept = keep_scores(judge, values, invert=invert)
            self._report(task, judge, field, values, ~kept, invert=invert)
            task = task.filter(from_bools(kept))
        return task

    def _report(
        self,
        batch: DocumentBatch,
        judge: Judge,
        field: str,
        values: pa.Array | pa.ChunkedArray,
        dropped: NDArray[np.bool_],
        *,
        invert: bool,
    ) -> None:
        if not isinstance(judge, DocumentFilter):
            self.context.drop(batch, from_bools(dropped), reason=name_of(judge), values=values)
            return
        refused, without_value = split_nulls(dropped, batch.column(field))
        threshold = judge.describe_threshold(invert=invert)
        self.context.drop(batch, refused, reason=judge.name, values=values, threshold=threshold)
        self.context.drop(batch, without_value, reason=NULL_SCORE, threshold=threshold)

    def _judges(self) -> list[Judge]:
        return list(self.filter_fn) if isinstance(self.filter_fn, list | tuple) else [self.filter_fn]

    def _fields(self) -> list[str]:
        return as_list(self.filter_field, len(self._judges()), who="Filter: filter_field")

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._judges()), who="Filter: invert")
