"""`Judge`: takes batches through the steps of one stage that judges texts, or of several in one pass.

A step measures the documents that the steps before it left, and drops some, keeps the measure as a column, or both; or
it changes their texts. Everything is counted once for all steps, and only in documents that are still there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_bools, is_null
from gristmill.stages.base import name_of
from gristmill.stages.context import StageContext
from gristmill.stages.measured import KEPT_BEFORE, About, Gone, Measured, Shown
from gristmill.stages.text.judging.document_filter import (
    ColumnFilter,
    DocumentFilter,
    Values,
    has_column_form,
    read_scores,
    score_parts,
    to_arrow,
    to_scores,
)
from gristmill.stages.text.judging.rule import Column, Rule, RuleSet
from gristmill.stages.text.judging.shown_texts import ShownTexts, shown_batch
from gristmill.stages.text.judging.statistics import Pass, Statistic, TextColumn, plan_passes, unparsed_texts
from gristmill.stages.text.judging.texts import Texts
from gristmill.stages.text.judging.tokens import EnglishTokenizer
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import filter_column

# `Sieve`: a batch on its way through steps that judge texts.
#
# Rows are dropped by number; nothing is copied before the end. What is measured on a column of texts is kept with it,
# for whichever step asks next.

SMALL_BYTES = 1 << 16  # text a worker scores one document at a time: 0.1 s, as long as loading compiled code takes

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Instruments:
    """What measuring needs from batch to batch: which pass counts what, what a tokenizer has learnt, how much text
    may still come before compiled code is loaded.
    """

    planned: Mapping[Statistic, Pass]
    small_bytes: int = SMALL_BYTES
    _tokenizer: EnglishTokenizer | None = None

    def tokenizer(self) -> EnglishTokenizer:
        """One for all batches, made when the first text is cut."""
        if self._tokenizer is None:
            self._tokenizer = EnglishTokenizer()
        return self._tokenizer


class Sieve:
    """The rows that are left of a batch, the columns that were added for them, and what was measured on its texts."""

    def __init__(self, batch: DocumentBatch, instruments: Instruments) -> None:
        self.rows: Rows = np.arange(batch.num_items)
        self._batch = batch
        self._instruments = instruments
        self._added: dict[str, tuple[Rows, pa.Array]] = {}  # values and the rows they belong to
        self._texts: dict[str, Texts | None] = {}
        self._shown: dict[int, Shown] = {}  # by the texts
        self._sizes: NDArray[np.int64] | None = None

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column for the rows that are left."""
        if name in self._added:
            return pa.chunked_array([_at(self._added[name], self.rows)])
        column = self._batch.column(name)
        return column if len(self.rows) == len(column) else filter_column(column, from_bools(self.wanted()))

    def is_null(self, name: str) -> Mask:
        """Return true for the rows that are left and have no value."""
        texts = self._texts.get(name)
        if texts is not None:
            return texts.column.is_null[self.rows]
        return is_null(self.column(name)) if name in self._added else is_null(self._batch.column(name))[self.rows]

    def texts(self, name: str) -> Texts | None:
        """Return a column of the batch for kernels, all rows of it; None if it holds no texts."""
        if name not in self._texts:
            column, tools = self._text_column(name), self._instruments
            self._texts[name] = None if column is None else Texts(column, tools.tokenizer, tools.planned)
        return self._texts[name]

    def texts_for_rules(self, name: str) -> Texts:
        """Return the texts of a column; raise StageError if it holds none."""
        texts = self.texts(name)
        if texts is None:
            raise StageError(f"rules: expected a column of texts; got {self.column(name).type} in {name!r}")
        return texts

    def _text_column(self, name: str) -> TextColumn | None:
        if name in self._added:
            rows, values = self._added[name]
            added = TextColumn.of(pa.chunked_array([values]))
            if added is None or len(rows) == self._batch.num_items:
                return added
            starts, stops = (np.zeros(self._batch.num_items, np.int64) for _ in range(2))
            nulls = np.ones(self._batch.num_items, np.bool_)
            starts[rows], stops[rows], nulls[rows] = added.starts, added.stops, added.is_null
            return TextColumn(added.data, starts, stops, nulls)
        unparsed = unparsed_texts(self._batch, name)
        return TextColumn.of(self._batch.column(name)) if unparsed is None else unparsed

    def is_worth_counting(self, name: str) -> bool:
        """Whether compiled code pays: it is loaded already, or there has been more than a little text."""
        if self._instruments.small_bytes > 0:
            self._instruments.small_bytes -= self._text_bytes(name)
        return self._instruments.small_bytes <= 0

    def _text_bytes(self, name: str) -> int:
        """Return about how many bytes of text there are, without parsing what is not parsed."""
        if name not in self._batch.parsed_columns() and self._batch.lines is not None:
            return self._batch.lines.nbytes
        texts = self.texts(name)
        return 0 if texts is None else texts.column.num_bytes

    def wanted(self) -> Mask:
        """Return true for the rows of the batch that are left."""
        return self._mask(self.rows)

    def add(self, columns: Iterable[tuple[str, pa.Array]]) -> None:
        """Add columns, with values for the rows that are left."""
        for name, values in columns:
            self._added[name] = (self.rows, values)
            self._texts.pop(name, None)

    def rewrite(self, rules: RuleSet, name: str) -> None:
        """Replace the texts of a column by what a rule set makes of them."""
        texts = self.texts_for_rules(name)
        left = rules.rewrite(texts, self.wanted())
        if left is not texts:
            self._added[name] = (self.rows, left.to_arrow(self.rows))
            self._texts[name] = left

    def report(
        self,
        context: StageContext,
        dropped: Mask,
        *,
        reason: str,
        values: "Values | None",
        threshold: str | None,
        field: str,
    ) -> None:
        """Record why some of the rows that are left, and are about to be dropped, leave the stream."""
        rows = self.rows[dropped]
        if not len(rows):
            return
        own = values[dropped] if isinstance(values, np.ndarray) else None
        if values is not None and own is None and (context.keep_rejects or context.observes):
            own = to_arrow(values).filter(from_bools(dropped))
        gone = Gone(reason, rows, own, self.shown(field) if context.observes else self._batch)
        if not context.keep_rejects:
            context.drop_rows(self._batch, len(rows), gone, num_bytes=self._num_bytes(rows))
            return
        everyone = from_bools(np.ones(len(rows), np.bool_))
        measured = None if own is None else to_arrow(own)
        context.drop(self._take(rows), everyone, reason=reason, values=measured, threshold=threshold, gone=gone)

    def shown(self, field: str) -> Shown:
        """Return the documents as they are now, as examples show them; `field` is what was measured."""
        texts = self._texts.get(field)
        if texts is None and field in self._added:
            texts = self.texts(field)
        known = id(texts)
        if known not in self._shown:
            self._shown[known] = shown_batch(self._batch) if texts is None else ShownTexts(self._batch, texts.column)
        return self._shown[known]

    def _num_bytes(self, rows: Rows) -> int:
        if self._sizes is None:
            self._sizes = self._batch.item_bytes()
        return int(self._sizes[rows].sum())

    def keep(self, kept: Mask) -> None:
        """Drop the rows that are left and not kept."""
        self.rows = self.rows[kept]

    def result(self) -> DocumentBatch:
        """Return a batch of the rows that are left."""
        return self._take(self.rows)

    def _take(self, rows: Rows) -> DocumentBatch:
        batch = self._batch.filter(from_bools(self._mask(rows)))
        for name, added in self._added.items():
            batch = batch.with_column(name, _at(added, rows))
        return batch

    def _mask(self, rows: Rows) -> Mask:
        mask = np.zeros(self._batch.num_items, np.bool_)
        mask[rows] = True
        return mask


def _at(added: tuple[Rows, pa.Array], rows: Rows) -> pa.Array:
    """The values at some of the rows they were made for."""
    own, values = added
    if len(own) == len(rows):
        return values
    mask = np.zeros(len(own), np.bool_)
    mask[np.searchsorted(own, rows)] = True
    return values.filter(from_bools(mask))


# What is measured on documents, in one shape for filters, functions and rule sets: a value for each that is left.

AnyFilter = DocumentFilter[Any]
Judging = AnyFilter | Callable[..., object]  # a filter, or a function in the place of one

NULL_TEXT = "null_text"  # why a document without text was dropped, whichever filter or rule refused it
NULL_SCORE = "null_score"  # the same for a document without a value in the column a filter reads


class Measure(Protocol):
    """A value for each document that is left."""

    @property
    def null_reason(self) -> str | None:
        """Why a document that has nothing to measure is dropped; None if that is no special case."""
        ...

    def statistics(self) -> tuple[Statistic, ...]:
        """Return what is counted for it."""
        ...

    def values(self, documents: Sieve, field: str) -> Values:
        """Measure the documents that are left, in one of their columns."""
        ...


@dataclass(frozen=True)
class ScoreOfText:
    """What a filter or a function says of a text: from counts where it can be, else one document after another."""

    judge: Judging
    null_reason: ClassVar[str | None] = NULL_TEXT

    def statistics(self) -> tuple[Statistic, ...]:
        return self.judge.statistics() if has_column_form(self.judge) and isinstance(self.judge, ColumnFilter) else ()

    def values(self, documents: Sieve, field: str) -> Values:
        wanted = self.statistics()
        texts = documents.texts(field) if wanted and documents.is_worth_counting(field) else None
        if texts is None or not isinstance(self.judge, ColumnFilter):
            return score_texts(self.judge, documents.column(field))
        counts = texts.counts(documents.wanted(), wanted)
        left = {found: values[documents.rows] for found, values in zip(wanted, counts, strict=True)}
        return self.judge.score_counts(left)


@dataclass(frozen=True)
class ValueInColumn:
    """What a column holds already; for a filter whose scores have several parts, what several columns hold."""

    judge: Judging

    @property
    def null_reason(self) -> str | None:
        return NULL_SCORE if isinstance(self.judge, DocumentFilter) else None

    def statistics(self) -> tuple[Statistic, ...]:
        return ()

    def values(self, documents: Sieve, field: str) -> Values:
        return read_scores(documents.column, self.judge, field)


@dataclass(frozen=True)
class MeasureOfSet:
    """One of the measures of a rule set; several of them may have been taken together."""

    rules: RuleSet
    name: str
    null_reason: ClassVar[str | None] = NULL_TEXT

    def statistics(self) -> tuple[Statistic, ...]:
        return self.rules.statistics()

    def values(self, documents: Sieve, field: str) -> Values:
        texts = documents.texts_for_rules(field)
        known: dict[str, Column] = texts.remember(("measures", id(self.rules)), dict)
        if self.name not in known:
            self.rules.measure(self.name, texts, documents.wanted(), known)
        return known[self.name][documents.rows]


def score_texts(judge: Judging, texts: pa.ChunkedArray) -> pa.Array:
    """Score every text by itself; a null is scored as the empty text."""
    known = ["" if text is None else text for text in texts.to_pylist()]
    if isinstance(judge, DocumentFilter):
        return to_scores(judge.score_documents(known), judge.score_type)
    return to_scores([judge(text) for text in known], None)


def keep_scores(judge: Judging, scores: Values, *, invert: bool) -> NDArray[np.bool_]:
    """Return true for the rows to keep. A null score says nothing, so a filter object never keeps it."""
    if isinstance(judge, ColumnFilter) and isinstance(scores, np.ndarray):
        return judge.keep_column(scores) ^ invert
    each = to_arrow(scores).to_pylist()
    if isinstance(judge, DocumentFilter):
        return np.array([score is not None and bool(judge.keep_document(score)) != invert for score in each], np.bool_)
    return np.array([bool(judge(score)) != invert for score in each], np.bool_)


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
        self._stages = [[(step, _about(step, place)) for place, step in enumerate(steps)] for steps in stages]
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
            is_first = True
            for step, about in steps:
                if isinstance(step, Check):
                    is_first = not _check(sieve, step, about, context, is_first=is_first) and is_first
                else:
                    sieve.rewrite(step.rules, step.reads)
        return sieve.result()


def _about(step: Step, position: int) -> About:
    """Which measure a step takes, for those who look at how its values are distributed."""
    if not isinstance(step, Check):
        return About("")
    measure, decision = step.measure, step.decision
    bounds: tuple[float | None, float | None] = (None, None)
    name, words, amount = step.adds or step.reads, "", None
    if isinstance(measure, MeasureOfSet):
        words = measure.name
    elif isinstance(measure.judge, DocumentFilter):  # type: ignore[attr-defined]  # the two other kinds have one
        judge = measure.judge  # type: ignore[attr-defined]
        bounds, words, amount = judge.bounds(), judge.measure, judge.amount
    if isinstance(decision, KeptByRule):
        bounds = decision.rule.bounds
    if decision is None:
        return About(name, words or name, decides=False, amount=amount, position=position)
    return About(decision.reason, words or name, *bounds, decision.describe(), amount=amount, position=position)


def _check(sieve: Sieve, step: Check, about: About, context: StageContext, *, is_first: bool) -> bool:
    """Take one step; return whether anything was measured. `is_first`: nothing was, so far in its stage."""
    if isinstance(step.measure, MeasureOfSet) and not len(sieve.rows):
        return False  # nothing to measure, and what a set measures is never a column
    values = step.measure.values(sieve, step.reads)
    kept = None if step.decision is None else step.decision.keeps(values)
    if context.observes:
        rows = sieve.rows if is_first else KEPT_BEFORE
        context.note_measured(Measured(about, values, kept, rows, sieve.shown(step.reads)))
    if step.decision is not None and kept is not None and not kept.all():
        _report(sieve, step, step.decision, context, ~kept, values)
    if step.adds is not None:
        judge = step.measure.judge if isinstance(step.measure, ScoreOfText) else None
        sieve.add(score_parts(judge, step.adds, to_arrow(values)))
    if kept is not None:
        sieve.keep(kept)
    return True


def _report(
    sieve: Sieve, step: Check, decision: Decision, context: StageContext, dropped: Mask, values: Values
) -> None:
    threshold, null_reason, field = decision.describe(), step.measure.null_reason, step.reads
    if null_reason is None:
        sieve.report(context, dropped, reason=decision.reason, values=values, threshold=threshold, field=field)
        return
    null = sieve.is_null(field)
    sieve.report(context, dropped & ~null, reason=decision.reason, values=values, threshold=threshold, field=field)
    of_nothing = None if null_reason == NULL_SCORE else values  # a missing score has no value to show
    sieve.report(context, dropped & null, reason=null_reason, values=of_nothing, threshold=threshold, field=field)
