"""`ScoreFilter`: measure documents and drop those a filter refuses, in one stage."""

from dataclasses import KW_ONLY, dataclass
from typing import cast

from gristmill.errors import ConfigError
from gristmill.stages.names import as_list, join_names
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter_stage import _FilterStage
from gristmill.stages.text.filters.score_columns import score_fields
from gristmill.stages.text.filters.step import Kind, Step


@dataclass
class ScoreFilter(_FilterStage):
    """Keep the documents every filter keeps; with `invert`, those it would drop.

    Filters run in the order given, each on what the ones before it left, so a document is dropped for the first reason
    that applies. `score_field` names a column to keep the scores in; the lists are as long as the list of filters.
    """

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

    def steps(self) -> list[Step]:
        each = zip(self._filters(), self._text_fields(), self._score_fields(), self._inverts(), strict=True)
        return [Step(Kind.SCORE_FILTER, f, text, score, invert=invert) for f, text, score, invert in each]

    def _filters(self) -> list[DocumentFilter[object]]:
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
