"""`Filter`: drop documents by a column that is already there."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from gristmill.errors import ConfigError
from gristmill.stages.names import as_list
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.filter_stage import _FilterStage
from gristmill.stages.text.filters.score_columns import score_fields
from gristmill.stages.text.filters.step import Kind, Step

Judge = Callable[[object], bool] | DocumentFilter[object]


@dataclass
class Filter(_FilterStage):
    """Keep the documents whose value in `filter_field` every filter or function keeps.

    A function is given None where the value is missing; a filter object never keeps such a document.
    """

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

    def steps(self) -> list[Step]:
        each = zip(self._judges(), self._fields(), self._inverts(), strict=True)
        return [Step(Kind.FILTER, judge, field, None, invert=invert) for judge, field, invert in each]

    def _judges(self) -> list[Judge]:
        return list(self.filter_fn) if isinstance(self.filter_fn, list | tuple) else [self.filter_fn]

    def _fields(self) -> list[str]:
        return as_list(self.filter_field, len(self._judges()), who="Filter: filter_field")

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._judges()), who="Filter: invert")
