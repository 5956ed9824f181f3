"""The pipelines on either side of a choice of thresholds: one writes the measures, one has new thresholds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from gristmill.kernels.arrow_arrays import from_bools, is_null
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.io import ParquetWriter
from gristmill.tasks import DocumentBatch
from gristmill.workflows.thresholds.rule import FilterRule, rules_of

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage


FIRST_STAGE = "note_nulls"  # of those that measure


class _NoteNulls(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Adds columns that say where a text is missing: a run gives another reason for dropping such documents."""

    adds_only_declared_columns: ClassVar[bool] = True
    name = FIRST_STAGE

    def __init__(self, columns: dict[str, str]) -> None:
        self.columns_of = dict(columns)  # added column -> column of texts

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self.columns_of.values()))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.columns_of)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        for added, field in self.columns_of.items():
            task = task.with_column(added, from_bools(is_null(task.column(field))))
        return task


def score_pipeline(pipeline: Pipeline, output: str) -> Pipeline:
    """Return a pipeline that reads what this one reads and writes every document with all scores, as Parquet.

    Nothing is dropped. The columns are `score_` and the rule's name; rules that measure the same share one.
    """
    rules = iter(rules_of(pipeline))
    last_filter = max(place for place, stage in enumerate(pipeline.stages) if isinstance(stage, ScoreFilter))
    stages: list[object] = []
    measured: set[str] = set()
    for stage in pipeline.stages[: last_filter + 1]:
        if not isinstance(stage, ScoreFilter):
            stages.append(stage)
            continue
        own = {rule.column: rule for rule in (next(rules) for _ in stage.steps()) if rule.column not in measured}
        nulls = {rule.null_column: rule.text_field for rule in own.values() if rule.null_column not in measured}
        if own:
            stages += [_NoteNulls(nulls)] if nulls else []
            stages.append(_measuring(list(own.values())))
        measured |= {*own, *nulls}
    return Pipeline(f"{pipeline.name}-scores", stages=cast("list[AnyStage]", [*stages, ParquetWriter(output)]))


def _measuring(rules: Sequence[FilterRule]) -> Score:
    return Score(
        [rule.measure for rule in rules],
        score_field=[rule.column for rule in rules],
        text_field=[rule.text_field for rule in rules],
        name=f"score_{rules[0].stage}",  # which no other stage has
    )


def with_rules(pipeline: Pipeline, rules: Sequence[FilterRule]) -> Pipeline:
    """Return the pipeline whose filters decide as these rules do: those of `rules_of`, some with other thresholds.

    It is the pipeline one would have written with these thresholds, to the last byte of what it writes.
    """
    changed = iter(rules)
    stages: list[AnyStage] = []
    for stage in pipeline.stages:
        if not isinstance(stage, ScoreFilter):
            stages.append(stage)
            continue
        judges = [next(changed).judge for _ in stage.steps()]
        copy = stage.with_()
        copy.__dict__["filter_obj"] = judges if isinstance(stage.filter_obj, list | tuple) else judges[0]
        copy.__dict__.pop("_runner", None)
        stages.append(cast("AnyStage", copy))
    return Pipeline(pipeline.name, description=pipeline.description, stages=stages)
