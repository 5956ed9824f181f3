"""`Score`: measure documents and keep the measures as columns. Drops nothing."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from gristmill.errors import ConfigError
from gristmill.stages.names import as_list, join_names
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter_stage import _FilterStage
from gristmill.stages.text.filters.score_columns import score_fields
from gristmill.stages.text.filters.step import Kind, Step

Scorer = Callable[[str], object] | DocumentFilter[object]


@dataclass
class Score(_FilterStage):
    """Add a column of scores for each filter or function of a text. A null text is scored as the empty text."""

    score_fn: Scorer | list[Scorer]
    score_field: str | list[str]
    text_field: str | list[str] = "text"
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for scorer in self._scorers():
            if not callable(scorer) and not isinstance(scorer, DocumentFilter):
                raise ConfigError(f"Score: expected score_fn to be a DocumentFilter or a function; got {scorer!r}")
        fields = self._score_fields()
        if len(fields) != len(self._scorers()) or len(set(fields)) != len(fields):
            raise ConfigError(
                f"Score: expected a score_field of its own for each of {len(self._scorers())} filters; "
                f"got {self.score_field!r}"
            )
        self._text_fields()
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return f"score_{join_names(self._scorers())}"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._text_fields()))

    def outputs(self) -> tuple[list[str], list[str]]:
        fields = zip(self._scorers(), self._score_fields(), strict=True)
        return ["data"], [name for scorer, field in fields for name in score_fields(scorer, field)]

    def steps(self) -> list[Step]:
        each = zip(self._scorers(), self._text_fields(), self._score_fields(), strict=True)
        return [Step(Kind.SCORE, judge, text, score) for judge, text, score in each]

    def _scorers(self) -> list[Scorer]:
        return list(self.score_fn) if isinstance(self.score_fn, list | tuple) else [self.score_fn]

    def _score_fields(self) -> list[str]:
        return [self.score_field] if isinstance(self.score_field, str) else list(self.score_field)

    def _text_fields(self) -> list[str]:
        return as_list(self.text_field, len(self._scorers()), who="Score: text_field")
