"""`FilterRule`: one filter of a pipeline, separate from the texts it measures. It decides by the score alone."""

import dataclasses
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, nearest
from gristmill.kernels.arrow_arrays import is_null
from gristmill.pipeline import Pipeline
from gristmill.pipeline.compile import decompose, unique_names
from gristmill.stages.base import columns_read
from gristmill.stages.text.filters import DocumentFilter, Score, ScoreFilter
from gristmill.stages.text.judging.judge import keep_scores
from gristmill.stages.text.judging.rule import Bounds
from gristmill.stages.text.modifiers import Modify
from gristmill.stages.text.modules import AddId

THRESHOLD_PREFIXES = ("min_", "max_", "stop_at_")  # parameters that say what is kept, and not how it is measured
MEASURING = ("score_document", "score_documents", "score_counts", "statistics")

AnyFilter = DocumentFilter[Any]


@dataclass(frozen=True)
class FilterRule:
    """A filter, the column it reads, and whether it keeps what it would otherwise drop.

    `stage` is the name of its stage in a run. `changes` counts the stages before it that may have changed texts since
    the first filter: what is measured after a change is a different measure.
    """

    judge: AnyFilter
    text_field: str = "text"
    invert: bool = False
    stage: str = ""
    changes: int = 0

    @cached_property
    def name(self) -> str:
        """The identity of the measure: the filter's name and the parameters it is measured with."""
        field = "" if self.text_field == "text" else f"{self.text_field}_"
        behind = f"_{self.changes + 1}" if self.changes else ""
        return field + "_".join([self.judge.name, *self._measured_with()]) + behind

    @property
    def column(self) -> str:
        """Where the scores are."""
        return f"score_{self.name}"

    @property
    def null_column(self) -> str:
        """The column that says which documents had no text."""
        return f"no_{self.text_field}" + (f"_{self.changes + 1}" if self.changes else "")

    @property
    def measure(self) -> AnyFilter:
        """The filter whose scores serve every threshold."""
        return self.judge.for_any_threshold()

    @property
    def threshold(self) -> str:
        """The condition a kept document meets."""
        return self.judge.describe_threshold(invert=self.invert) or "as the filter decides"

    def keep(self, scores: pa.ChunkedArray) -> NDArray[np.bool_]:
        """Return true for the documents to keep, as the filter decides in a run. A missing score keeps nothing."""
        judge, bounds = self.judge, Bounds(*self.judge.bounds())
        by_bounds = type(judge).keep_document is DocumentFilter.keep_document and not bounds.is_open
        if not by_bounds or pa.types.is_nested(scores.type):
            return keep_scores(judge, scores, invert=self.invert)
        kept: NDArray[np.bool_] = ~is_null(scores) & (bounds.hold(scores.to_numpy()) != self.invert)
        return kept

    def with_parameter(self, name: str, value: object) -> "FilterRule":
        """Return the rule with another threshold."""
        who = f"rule {self.name}"
        known = _parameters(self.judge)
        thresholds = thresholds_of(self.judge)
        if name not in thresholds:
            expected = ", ".join(thresholds) or "no threshold at all"
            raise ConfigError(f"{who}: expected one of its thresholds ({expected}); got {name!r}{nearest(name, known)}")
        if not isinstance(value, int | float):
            raise ConfigError(f"{who}: expected {name} to be a number; got {value!r}")
        return dataclasses.replace(self, judge=dataclasses.replace(self.judge, **{name: value}))  # type: ignore[type-var]

    def _measured_with(self) -> list[str]:
        thresholds = thresholds_of(self.judge)
        return [
            f"{name}{value}" if isinstance(value, int | float) else f"{name}_{value}"
            for name, (value, default) in _parameters(self.judge).items()
            if name not in thresholds and value != default
        ]


def thresholds_of(judge: AnyFilter) -> list[str]:
    """Return the parameters of a filter that can be changed afterwards.

    They are known by their names; but a parameter that the measuring itself uses is not one, unless the filter has a
    form for any threshold.
    """
    names = [name for name in _parameters(judge) if name.startswith(THRESHOLD_PREFIXES)]
    if type(judge).for_any_threshold is not DocumentFilter.for_any_threshold:
        return names
    used = set(_names_used_in_measuring(type(judge)))
    return [name for name in names if name not in used]


def rules_of(pipeline: Pipeline) -> list[FilterRule]:
    """Return the rules of a pipeline's filters, in order, or refuse a pipeline whose counts cannot be had from scores.

    Behind the first filter, only stages are allowed that take every document by itself and drop none: what they do is
    then the same whether or not documents were dropped before them.
    """
    stages = pipeline.stages
    places = [place for place, stage in enumerate(stages) if isinstance(stage, ScoreFilter)]
    if not places:
        raise ConfigError(
            f"{pipeline.name}: expected at least one ScoreFilter, whose scores can be kept; got {_names(stages)}"
        )
    names = _stage_names(pipeline)
    rules: list[FilterRule] = []
    changes = 0
    for place, stage in enumerate(stages[places[0] :], start=places[0]):
        if isinstance(stage, ScoreFilter) and type(stage).process is ScoreFilter.process:
            rules += [
                FilterRule(filter_obj, text_field, invert, names[place], changes)
                for filter_obj, text_field, invert in stage.filters()
            ]
        else:
            _check_takes_documents_singly(pipeline, place, last_filter=places[-1])
            changes += 1
    _check_no_stage_reads_scores(pipeline, places)
    return rules


def _check_takes_documents_singly(pipeline: Pipeline, place: int, *, last_filter: int) -> None:
    stage = pipeline.stages[place]
    singly = type(stage) in (Modify, Score)
    at_the_end = place > last_filter and (isinstance(stage, AddId) or stage.output_directory() is not None)
    if singly or at_the_end:
        return
    where = "between filters" if place < last_filter else "behind the filters"
    raise ConfigError(
        f"{pipeline.name}: cannot be scored because of stage {stage.stage_name()} ({type(stage).__name__}) {where}: "
        "expected ScoreFilter, Modify and Score, and a writer at the end. What any other stage does may depend on the "
        "documents that are left, or it may drop some itself, so scores alone do not tell what a run would give"
    )


def _check_no_stage_reads_scores(pipeline: Pipeline, places: Sequence[int]) -> None:
    """Scores are kept under names of their own, so a stage before the last filter would not find those it reads."""
    for place in places:
        added = set(pipeline.stages[place].outputs()[1])
        for reader in pipeline.stages[place + 1 : places[-1] + 1]:
            for name in added & set(columns_read(reader)):
                raise ConfigError(
                    f"{pipeline.name}: cannot be scored because of stage {reader.stage_name()}: it reads {name!r}, a "
                    "score that may depend on thresholds"
                )


def _stage_names(pipeline: Pipeline) -> list[str]:
    """Return the name each stage has in a run; of a composite, that of its last part."""
    parts = [decompose([stage]) for stage in pipeline.stages]
    names = iter(unique_names([stage for part in parts for stage in part]))
    return [[next(names) for _ in part][-1] if part else "" for part in parts]


def _parameters(judge: AnyFilter) -> dict[str, tuple[object, object]]:
    """Value and default of each parameter; nothing is known of a filter that is not a dataclass."""
    fields: dict[str, dataclasses.Field[object]] = getattr(judge, "__dataclass_fields__", {})
    return {name: (getattr(judge, name), field.default) for name, field in fields.items() if field.init}


def _names_used_in_measuring(kind: type) -> Iterator[str]:
    """Yield the attributes used by the methods that measure and by those they call."""
    pending = [name for name in MEASURING if hasattr(kind, name)]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        seen.add(name)
        yield name
        method = getattr(kind, name, None)
        method = method.fget if isinstance(method, property) else method
        code = getattr(method, "__code__", None)
        if isinstance(code, types.CodeType):
            pending += [used for used in _names_in(code) if used not in seen]


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _names(stages: Sequence[object]) -> str:
    return ", ".join(f"{getattr(stage, 'name', '') or ''} ({type(stage).__name__})".strip() for stage in stages)
