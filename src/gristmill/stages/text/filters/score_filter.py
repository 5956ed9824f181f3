"""`ScoreFilter`: measure documents and drop those a filter refuses, in one stage."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, cast

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_bools
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter_setup import set_up_node, set_up_worker, wants_node_setup
from gristmill.stages.text.filters.per_document import (
    NULL_TEXT,
    AnyFilter,
    keep_scores,
    score_texts,
    split_nulls,
)
from gristmill.stages.text.filters.score_columns import score_fields, with_scores
from gristmill.stages.text.names import join_names
from gristmill.stages.text.one_for_each import as_list
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch


@dataclass
class ScoreFilter(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Keep the documents every filter keeps; with `invert`, those it would drop.

    Filters run in the order given, each on what the ones before it left, so a document is dropped for the first reason
    that applies. `score_field` names a column to keep the scores in; the lists are as long as the list of filters.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    filter_obj: DocumentFilter[object] | list[DocumentFilter[object]]
    text_field: str | list[str] = "text"
    score_field: str | list[str | None] | None = None
    invert: bool | list[bool] = False
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for judge in self._filters():
            if not isinstance(judge, DocumentFilter):
                raise ConfigError(f"ScoreFilter: expected filter_obj to be a DocumentFilter; got {judge!r}")
        if not self._filters():
            raise ConfigError("ScoreFilter: expected at least one filter; got an empty list")
        self.name = self.name or self.default_name()
        fields = [field for field in self._score_fields() if field is not None]
        if len(set(fields)) != len(fields):
            raise ConfigError(
                f"{self.name}: expected a different score_field for each filter; got {self.score_field!r}"
            )
        self._text_fields()
        self._inverts()

    def default_name(self) -> str:
        return join_names(self._filters())

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._text_fields()))

    def outputs(self) -> tuple[list[str], list[str]]:
        fields = zip(self._filters(), self._score_fields(), strict=True)
        return ["data"], [name for f, field in fields if field is not None for name in score_fields(f, field)]

    def wants_node_setup(self) -> bool:
        return wants_node_setup(self._filters())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        set_up_node(self._filters())

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        set_up_worker(self._filters())

    def process(self, task: DocumentBatch) -> DocumentBatch:
        steps = zip(self._filters(), self._text_fields(), self._score_fields(), self._inverts(), strict=True)
        for judge, text_field, score_field, invert in steps:
            task = self._apply(task, judge, text_field, score_field, invert=invert)
        return task

    def _apply(
        self, batch: DocumentBatch, judge: AnyFilter, text_field: str, score_field: str | None, *, invert: bool
    ) -> DocumentBatch:
        texts = batch.column(text_field)
        scores = score_texts(judge, texts)
        kept = keep_scores(judge, scores, invert=invert)
        refused, without_text = split_nulls(~kept, texts)
        threshold = judge.describe_threshold(invert=invert)
        self.context.drop(batch, refused, reason=judge.name, values=scores, threshold=threshold)
        self.context.drop(batch, without_text, reason=NULL_TEXT, values=scores, threshold=threshold)
        if score_field is not None:
            batch = with_scores(batch, judge, score_field, scores)
        return batch.filter(from_bools(kept))

    def _filters(self) -> list[AnyFilter]:
        return list(self.filter_obj) if isinstance(self.filter_obj, list | tuple) else [self.filter_obj]

    def _text_fields(self) -> list[str]:
        return as_list(self.text_field, len(self._filters()), who="ScoreFilter: text_field")

    def _score_fields(self) -> list[str | None]:
        if isinstance(self.score_field, str) and len(self._filters()) > 1:
            number = len(self._filters())
            raise ConfigError(f"{self.name}: expected score_field to be a list of {number}; got {self.score_field!r}")
        return cast("list[str | None]", as_list(self.score_field, len(self._filters()), who="ScoreFilter: score_field"))

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._filters()), who="ScoreFilter: invert")

    def steps(self) -> list[tuple[AnyFilter, str, bool]]:
        """Each filter in order, the column it reads, and whether it is inverted."""
        return list(zip(self._filters(), self._text_fields(), self._inverts(), strict=True))
