"""`Judge`: takes batches through the steps of one stage that judges texts, or of several in one pass.

A step measures the documents that the steps before it left, and drops some, keeps the measure as a column, or both; or
it changes their texts. Everything is counted once for all steps, and only in documents that are still there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gristmill.stages.context import StageContext
from gristmill.stages.names import name_of
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.judging.measure import (
    NULL_SCORE,
    Judging,
    Measure,
    MeasureOfSet,
    ScoreOfText,
    Values,
    keep_scores,
    score_parts,
    to_arrow,
)
from gristmill.stages.text.judging.rule import Rule, RuleSet
from gristmill.stages.text.judging.sieve import SMALL_BYTES, Instruments, Mask, Sieve
from gristmill.stages.text.judging.statistics import plan_passes
from gristmill.tasks import DocumentBatch


class Decision(Protocol):
    """What is made of a measure: which documents are kept, why the others are not, and the condition they failed."""

    def keeps(self, values: Values) -> Mask:
        """Return true for the values of documents to keep."""
        ...

    @property
    def reason(self) -> str:
        """Why a document is dropped."""
        ...

    def describe(self) -> str | None:
        """The condition a kept document meets, if it can be put in words."""
        ...


@dataclass(frozen=True)
class KeptByFilter:
    """As a filter, or a function in the place of one, decides."""

    judge: Judging
    invert: bool = False

    def keeps(self, values: Values) -> Mask:
        return keep_scores(self.judge, values, invert=self.invert)

    @property
    def reason(self) -> str:
        return name_of(self.judge)

    def describe(self) -> str | None:
        return self.judge.describe_threshold(invert=self.invert) if isinstance(self.judge, DocumentFilter) else None


@dataclass(frozen=True)
class KeptByRule:
    """As the rule of a published set decides."""

    rule: Rule

    def keeps(self, values: Values) -> Mask:
        return ~self.rule.drops(values)

    @property
    def reason(self) -> str:
        return self.rule.reason

    def describe(self) -> str | None:
        return self.rule.describe()


@dataclass(frozen=True)
class Check:
    """Measure a column of the documents that are left; keep the measure, drop documents by it, or both."""

    measure: Measure
    reads: str
    decision: Decision | None = None
    adds: str | None = None


@dataclass(frozen=True)
class Rewrite:
    """Go on with the texts a rule set makes of those that are left."""

    rules: RuleSet
    reads: str


Step = Check | Rewrite


def steps_of_rules(rules: RuleSet, field: str) -> list[Step]:
    """Return what a rule set does, in order."""
    checks = [Check(MeasureOfSet(rules, rule.measure), field, KeptByRule(rule)) for rule in rules.applied_rules()]
    return [*checks, Rewrite(rules, field)] if rules.changes_texts() else [*checks]


class Judge:
    """The steps of stages, and what they measure with."""

    def __init__(self, stages: Sequence[Sequence[Step]], *, small_bytes: int = SMALL_BYTES) -> None:
        self._stages = stages
        measures = [step.measure for steps in stages for step in steps if isinstance(step, Check)]
        planned = plan_passes(found for measure in measures for found in measure.statistics())
        self._instruments = Instruments(planned, small_bytes)

    def run(
        self,
        batch: DocumentBatch,
        contexts: Sequence[StageContext],
        enter: Callable[[int, int], None] | None = None,
    ) -> DocumentBatch:
        """Return the documents every step keeps, with the columns the steps add; stage k reports in `contexts[k]`."""
        sieve = Sieve(batch, self._instruments)
        for number, (steps, context) in enumerate(zip(self._stages, contexts, strict=True)):
            if enter is not None:
                enter(number, len(sieve.rows))
            for step in steps:
                if isinstance(step, Check):
                    _check(sieve, step, context)
                else:
                    sieve.rewrite(step.rules, step.reads)
        return sieve.result()


def _check(sieve: Sieve, step: Check, context: StageContext) -> None:
    if isinstance(step.measure, MeasureOfSet) and not len(sieve.rows):
        return  # nobody to measure, and what a set measures is never a column
    values = step.measure.values(sieve, step.reads)
    kept = None if step.decision is None else step.decision.keeps(values)
    if step.decision is not None and kept is not None and not kept.all():
        _report(sieve, step, step.decision, context, ~kept, values)
    if step.adds is not None:
        judge = step.measure.judge if isinstance(step.measure, ScoreOfText) else None
        sieve.add(score_parts(judge, step.adds, to_arrow(values)))
    if kept is not None:
        sieve.keep(kept)


def _report(
    sieve: Sieve, step: Check, decision: Decision, context: StageContext, dropped: Mask, values: Values
) -> None:
    shown = to_arrow(values) if context.keep_rejects else None
    threshold, null_reason = decision.describe(), step.measure.null_reason
    if null_reason is None:
        sieve.report(context, dropped, reason=decision.reason, values=shown, threshold=threshold)
        return
    null = sieve.is_null(step.reads)
    sieve.report(context, dropped & ~null, reason=decision.reason, values=shown, threshold=threshold)
    value_of_nothing = None if null_reason == NULL_SCORE else shown  # a missing score has no value to show
    sieve.report(context, dropped & null, reason=null_reason, values=value_of_nothing, threshold=threshold)
