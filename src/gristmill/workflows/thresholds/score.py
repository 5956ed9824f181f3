"""The pipelines on either side of a choice of thresholds: one writes the measures, one writes what is kept by them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Filter, Score, ScoreFilter
from gristmill.stages.text.io import JsonlWriter, ParquetReader, ParquetWriter
from gristmill.workflows.thresholds.rule import Rule, rules_of

if TYPE_CHECKING:
    from gristmill.engine.plan import AnyStage


def score_pipeline(pipeline: Pipeline, output: str) -> Pipeline:
    """Return a pipeline that reads what this one reads and writes every document with all scores, as Parquet.

    Nothing is dropped. The columns are `score_` and the rule's name; rules that measure the same share one.
    """
    rules = list({rule.column: rule for rule in rules_of(pipeline)}.values())
    first_filter = next(place for place, stage in enumerate(pipeline.stages) if isinstance(stage, ScoreFilter))
    measure = Score(
        [rule.judge for rule in rules],
        score_field=[rule.column for rule in rules],
        text_field=[rule.text_field for rule in rules],
        name="score",
    )
    stages = [*pipeline.stages[:first_filter], measure, ParquetWriter(output)]
    return Pipeline(f"{pipeline.name}-scores", stages=cast("list[AnyStage]", stages))


def kept_pipeline(scored: str, rules: Sequence[Rule], output: str) -> Pipeline:
    """Return a pipeline that writes, as JSONL, the scored documents every rule keeps."""
    keep = Filter(
        [rule.judge for rule in rules],
        filter_field=[rule.column for rule in rules],
        invert=[rule.invert for rule in rules],
        name="rules",
    )
    stages = [ParquetReader(scored), keep, JsonlWriter(output)]
    return Pipeline("rethreshold", stages=cast("list[AnyStage]", stages))
