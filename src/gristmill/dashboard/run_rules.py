"""What a run has recorded about its documents, in the form that is shown: rules with examples, and slices.

From `metrics/observations.py`: all of it is the same for any number of workers and after any crash.
"""

import itertools
import math
from collections.abc import Mapping

import msgspec

from gristmill.dashboard.histogram import Histogram, histogram
from gristmill.metrics.observations import Example, MeasureTally, Observations, Outcomes, Slices

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
WINDOW_SHOWN = 5  # examples next to a threshold, on each side
SAMPLE_SHOWN = 4  # of each reason
TEXT_CHARS = 400
VALUES_SHOWN = 100  # of a column
REASONS_SHOWN = 5  # of a value


class ExampleShown(msgspec.Struct, frozen=True, kw_only=True):
    """One document: the value that was measured, which it is, and how it begins."""

    value: float | None
    id: str
    source: str
    place: str
    text: str


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The documents next to one threshold, the nearest first."""

    bound: str  # low or high
    threshold: float
    kept: tuple[ExampleShown, ...]
    refused: tuple[ExampleShown, ...]


class LabelShown(msgspec.Struct, frozen=True, kw_only=True):
    """How many documents with one label were kept and refused; None is the label of those that have none."""

    label: str | None
    kept: int
    refused: int


class RuleData(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of one stage. `dropped` is the ledger's: what left for the reason of this name."""

    stage: str
    name: str
    measure: str
    condition: str | None  # that a kept document meets, in words
    low: float | None
    high: float | None
    decides: bool  # whether documents are dropped by it
    amount: str | None  # "tokens" if sums of the measure are an amount of the run
    kept: int
    refused: int
    dropped: int
    not_numbers: int
    kept_sum: float
    refused_sum: float
    least: float | None
    greatest: float | None
    quantiles: dict[str, float]
    histogram: Histogram
    nearest: tuple[Window, ...]
    slots_kept: dict[str, int]  # slot -> documents; `metrics/tally.py` says which values are in a slot
    slots_refused: dict[str, int]
    labels: tuple[LabelShown, ...] = ()  # where what was found is not a number but a word: the commonest first

    @property
    def measured(self) -> int:
        """Documents that came this far."""
        return self.kept + self.refused


class SampleShown(msgspec.Struct, frozen=True, kw_only=True):
    """Documents that a stage dropped for one reason, taken evenly from all of them."""

    stage: str
    reason: str
    examples: tuple[ExampleShown, ...]


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Documents with one value of a column that left for one reason."""

    stage: str
    reason: str
    documents: int
    num_bytes: int


class SliceValue(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the documents with one value of a column; None is the value of those that have none."""

    value: str | None
    documents: int
    num_bytes: int
    written: int
    written_bytes: int
    losses: tuple[Loss, ...]  # the largest

    @property
    def lost(self) -> int:
        return self.documents - self.written


class SliceTable(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one column, those with the most documents first."""

    column: str
    num_values: int
    values: tuple[SliceValue, ...]


def rules_of(seen: Observations, dropped: Mapping[tuple[str, str], int], *, examples: bool) -> tuple[RuleData, ...]:
    """Return the rules in the order of the pipeline. `dropped` is what the ledger says, by stage and reason."""
    return tuple(_rule(tally, dropped.get((tally.stage, tally.name), 0), examples=examples) for tally in seen.tallies)


def _rule(tally: MeasureTally, dropped: int, *, examples: bool) -> RuleData:
    values = tally.distribution
    ends = [end for side in (tally.kept, tally.refused) for end in (side.least, side.greatest) if end is not None]
    thresholds = [bound for bound in (tally.low, tally.high) if bound is not None]
    return RuleData(
        stage=tally.stage,
        name=tally.name,
        measure=tally.measure,
        condition=tally.condition,
        low=_finite(tally.low),
        high=_finite(tally.high),
        decides=tally.decides,
        amount=tally.amount,
        kept=tally.num_kept,
        refused=tally.num_refused,
        dropped=dropped,
        not_numbers=values.num_not_numbers,
        kept_sum=tally.kept.sum,
        refused_sum=tally.refused.sum,
        least=_finite(min(ends, default=None)),
        greatest=_finite(max(ends, default=None)),
        quantiles={f"p{100 * share:g}": values.quantile(share) for share in QUANTILES} if values.num_values else {},
        histogram=histogram(tally.kept, tally.refused, thresholds),
        nearest=tuple(
            Window(
                bound=window.bound,
                threshold=window.threshold,
                kept=tuple(map(_example, window.kept[:WINDOW_SHOWN])),
                refused=tuple(map(_example, window.refused[:WINDOW_SHOWN])),
            )
            for window in (tally.nearest if examples else ())
            if math.isfinite(window.threshold)
        ),
        slots_kept={str(slot): count for slot, count in sorted(tally.kept.slots.items())},
        slots_refused={str(slot): count for slot, count in sorted(tally.refused.slots.items())},
        labels=tuple(
            LabelShown(label=label, kept=count.kept, refused=count.refused)
            for label, count in itertools.islice(tally.labels.by_size() if tally.labels else (), VALUES_SHOWN)
        ),
    )


def samples_of(seen: Observations, *, examples: bool) -> tuple[SampleShown, ...]:
    """Return some of what was dropped, by reason."""
    if not examples:
        return ()
    return tuple(
        SampleShown(
            stage=sample.stage,
            reason=sample.reason,
            examples=tuple(map(_example, sample.examples[:SAMPLE_SHOWN])),
        )
        for sample in seen.samples
    )


def slices_of(seen: Observations) -> tuple[SliceTable, ...]:
    """Return what became of documents by the values of a column."""
    return tuple(_slices(column, slices) for column, slices in sorted(seen.slices.items()))


def _slices(column: str, slices: Slices) -> SliceTable:
    found = list(slices.by_size())
    return SliceTable(
        column=column,
        num_values=len(found),
        values=tuple(_slice_value(value, outcomes) for value, outcomes in found[:VALUES_SHOWN]),
    )


def _slice_value(value: str | None, outcomes: Outcomes) -> SliceValue:
    losses = [
        Loss(stage=stage, reason=reason, documents=amount.documents, num_bytes=amount.num_bytes)
        for stage, reasons in outcomes.dropped.items()
        for reason, amount in reasons.items()
    ]
    return SliceValue(
        value=value,
        documents=outcomes.total.documents,
        num_bytes=outcomes.total.num_bytes,
        written=outcomes.written.documents,
        written_bytes=outcomes.written.num_bytes,
        losses=tuple(sorted(losses, key=lambda loss: (-loss.documents, loss.stage, loss.reason))[:REASONS_SHOWN]),
    )


def _example(example: Example) -> ExampleShown:
    return ExampleShown(
        value=_finite(example.value),
        id=example.id[:TEXT_CHARS],
        source=example.source[:TEXT_CHARS],
        place=example.place[:TEXT_CHARS],
        text=example.text[:TEXT_CHARS],
    )


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
