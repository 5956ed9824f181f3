"""`Rule`: one filter of a pipeline, apart from the texts it measures. Its decision needs the score alone."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, nearest
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter

THRESHOLD_PREFIXES = ("min_", "max_", "stop_at_")  # parameters that say what is kept, and not how it is measured

AnyFilter = DocumentFilter[object]


@dataclass(frozen=True)
class Rule:
    """A filter, the column it reads, and whether it keeps what it would otherwise drop."""

    judge: AnyFilter
    text_field: str = "text"
    invert: bool = False

    @cached_property
    def name(self) -> str:
        """What tells the measure from others: the filter's name and the parameters it is measured with."""
        field = "" if self.text_field == "text" else f"{self.text_field}_"
        return field + "_".join([self.judge.name, *self._measured_with()])

    @property
    def column(self) -> str:
        """Where the scores are."""
        return f"score_{self.name}"

    @property
    def threshold(self) -> str:
        """What a kept document meets."""
        return self.judge.describe_threshold(invert=self.invert) or "as the filter decides"

    def keep(self, scores: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return true for the documents to keep. A missing score keeps nothing."""
        judge = self.judge
        if type(judge).keep_document is DocumentFilter.keep_document and not pa.types.is_struct(scores.type):
            low, high = judge.bounds()
            values = scores.to_numpy()  # a null is NaN here, which no bound holds
            inside = np.isfinite(values) if values.dtype.kind == "f" else np.ones(len(values), np.bool_)
            inside &= values >= low if low is not None else True
            inside &= values <= high if high is not None else True
            return ~inside & np.isfinite(values) if self.invert else inside
        kept = [score is not None and bool(judge.keep_document(score)) != self.invert for score in scores.to_pylist()]
        return np.array(kept, np.bool_)

    def with_parameter(self, name: str, value: object) -> "Rule":
        """Return the rule with another threshold."""
        who = f"rule {self.name}"
        known = _parameters(self.judge)
        thresholds = [known_name for known_name in known if known_name.startswith(THRESHOLD_PREFIXES)]
        if name not in thresholds:
            expected = ", ".join(thresholds) or "no threshold at all"
            raise ConfigError(f"{who}: expected one of its thresholds ({expected}); got {name!r}{nearest(name, known)}")
        if not isinstance(value, int | float):
            raise ConfigError(f"{who}: expected {name} to be a number; got {value!r}")
        return dataclasses.replace(self, judge=dataclasses.replace(self.judge, **{name: value}))  # type: ignore[type-var]

    def _measured_with(self) -> list[str]:
        return [
            f"{name}{value}" if isinstance(value, int | float) else f"{name}_{value}"
            for name, (value, default) in _parameters(self.judge).items()
            if not name.startswith(THRESHOLD_PREFIXES) and value != default
        ]


def rules_of(pipeline: Pipeline) -> list[Rule]:
    """Return the rules of a pipeline's filters, in order.

    Filters must follow one another: behind a stage that changes texts, scores are those of other texts.
    """
    stages = pipeline.stages
    places = [place for place, stage in enumerate(stages) if isinstance(stage, ScoreFilter)]
    if not places:
        raise ConfigError(f"{pipeline.name}: expected at least one ScoreFilter; got {_names(stages)}")
    between = [stage for stage in stages[places[0] : places[-1]] if not isinstance(stage, ScoreFilter)]
    if between:
        raise ConfigError(f"{pipeline.name}: expected nothing but ScoreFilter between filters; got {_names(between)}")
    filters = [stage for stage in stages if isinstance(stage, ScoreFilter)]
    return [
        Rule(step.judge.for_any_threshold(), step.reads, step.invert)
        for stage in filters
        for step in stage.steps()
        if isinstance(step.judge, DocumentFilter)
    ]


def _parameters(judge: AnyFilter) -> dict[str, tuple[object, object]]:
    """Value and default of each parameter; of a filter that is no dataclass nothing is known."""
    fields: dict[str, dataclasses.Field[object]] = getattr(judge, "__dataclass_fields__", {})
    return {name: (getattr(judge, name), field.default) for name, field in fields.items() if field.init}


def _names(stages: Sequence[object]) -> str:
    return ", ".join(getattr(stage, "name", "") or type(stage).__name__ for stage in stages)
