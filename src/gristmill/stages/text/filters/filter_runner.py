"""`FilterRunner`: takes batches through the steps of one stage, or of several in one pass.

Filters that have a column form are scored from counts, each of which is made once for all of them and only for the
documents still there; all others see one document after another. Little text is not worth loading compiled code for.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.context import StageContext
from gristmill.stages.names import name_of
from gristmill.stages.text.filters.column_filter import ColumnFilter, has_column_form
from gristmill.stages.text.filters.document_filter import DocumentFilter
from gristmill.stages.text.filters.per_document import NULL_SCORE, NULL_TEXT, keep_scores, score_texts
from gristmill.stages.text.filters.score_columns import read_scores, score_parts
from gristmill.stages.text.filters.sieve import Sieve
from gristmill.stages.text.filters.step import Kind, Step
from gristmill.stages.text.statistics.measure import plan_passes
from gristmill.tasks import DocumentBatch

SMALL_BYTES = 1 << 16  # text a worker scores one document at a time: 0.1 s, as long as loading compiled code takes


class FilterRunner:
    """The steps, and how much text has been through them."""

    def __init__(self, stages: Sequence[Sequence[Step]], *, small_bytes: int = SMALL_BYTES) -> None:
        self._stages = [[(step, _in_columns(step)) for step in steps] for steps in stages]
        filters = [step.judge for steps in self._stages for step, in_columns in steps if in_columns]
        self._passes = plan_passes(
            s for judge in filters if isinstance(judge, ColumnFilter) for s in judge.statistics()
        )
        self._small_bytes = small_bytes

    def run(
        self,
        batch: DocumentBatch,
        contexts: Sequence[StageContext],
        enter: Callable[[int, int], None] | None = None,
    ) -> DocumentBatch:
        """Return the documents every step keeps, with the columns the steps add; stage k reports in `contexts[k]`."""
        sieve = Sieve(batch, self._passes)
        for number, (steps, context) in enumerate(zip(self._stages, contexts, strict=True)):
            if enter is not None:
                enter(number, len(sieve.rows))
            for step, in_columns in steps:
                if step.kind is Kind.FILTER:
                    self._filter(sieve, step, context)
                else:
                    self._score(sieve, step, context, in_columns=in_columns)
        return sieve.result()

    def _score(self, sieve: Sieve, step: Step, context: StageContext, *, in_columns: bool) -> None:
        judge = step.judge
        scores: pa.Array | None = None
        kept: NDArray[np.bool_] | None = None
        if in_columns and isinstance(judge, ColumnFilter) and self._is_worth(sieve, step.reads):
            numbers = judge.score_counts(sieve.counts(step.reads, judge.statistics()))
            if step.kind is Kind.SCORE_FILTER:
                kept = judge.keep_column(numbers) != step.invert
            if step.adds is not None or (context.keep_rejects and kept is not None and not kept.all()):
                scores = from_numbers(numbers)
        else:
            scores = score_texts(judge, sieve.column(step.reads))
            if step.kind is Kind.SCORE_FILTER:
                kept = keep_scores(judge, scores, invert=step.invert)
        if kept is not None and not kept.all():
            self._report(sieve, step, context, ~kept, scores, NULL_TEXT)
        if step.adds is not None and scores is not None:
            sieve.add(score_parts(judge, step.adds, scores))
        if kept is not None:
            sieve.keep(kept)

    def _filter(self, sieve: Sieve, step: Step, context: StageContext) -> None:
        values = read_scores(sieve.column, step.judge, step.reads)
        kept = keep_scores(step.judge, values, invert=step.invert)
        self._report(sieve, step, context, ~kept, values, NULL_SCORE)
        sieve.keep(kept)

    def _is_worth(self, sieve: Sieve, field: str) -> bool:
        """Whether compiled code pays: it is loaded already, or there has been more than a little text."""
        if self._small_bytes > 0:
            self._small_bytes -= sieve.text_bytes(field)
        return self._small_bytes <= 0 and sieve.texts(field) is not None

    def _report(
        self,
        sieve: Sieve,
        step: Step,
        context: StageContext,
        dropped: NDArray[np.bool_],
        scores: pa.Array | None,
        null_reason: str,
    ) -> None:
        if not isinstance(step.judge, DocumentFilter):
            sieve.report(context, dropped, reason=name_of(step.judge), values=scores)
            return
        threshold = step.judge.describe_threshold(invert=step.invert)
        null = sieve.is_null(step.reads)
        values = scores if null_reason is NULL_TEXT else None  # a missing score has no value to show
        reasons = ((step.judge.name, dropped & ~null, scores), (null_reason, dropped & null, values))
        for reason, rows, shown in reasons:
            sieve.report(context, rows, reason=reason, values=shown, threshold=threshold)


def _in_columns(step: Step) -> bool:
    return step.kind is not Kind.FILTER and has_column_form(step.judge)
