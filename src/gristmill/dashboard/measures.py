"""`Measures`: what a run has recorded about its documents, in the form the page asks for it."""

from collections.abc import Iterable

import msgspec

from gristmill.metrics.observations import Example, Labels, MeasureTally, Nearest, Observations, Outcomes, Slices
from gristmill.metrics.tally import BEYOND, NOT_A_NUMBER, edge_of

MOST_VALUES = 50  # of a column that is sliced by; the largest


class Excerpt(msgspec.Struct, frozen=True):
    """The beginning of one document. `ref` is the number it can be asked for by, if the run has kept it whole."""

    id: str
    source: str
    text: str
    value: float | None = None
    ref: int | None = None


class Window(msgspec.Struct, frozen=True):
    """The documents next to a threshold, the nearest first."""

    bound: str
    threshold: float
    kept: list[Excerpt]
    refused: list[Excerpt]


class Rule(msgspec.Struct, frozen=True):
    """One measure of one stage. Slot `i` holds values from `edges[i]` to below `nexts[i]`, seen from zero."""

    stage: str
    name: str
    measure: str
    low: float | None
    high: float | None
    condition: str | None
    amount: str | None
    num_kept: int
    num_refused: int
    sum_kept: float
    sum_refused: float
    nan_refused: int  # refused although they could not be measured
    edges: list[float]
    nexts: list[float]
    kept: list[int]
    refused: list[int]
    nearest: list[Window]
    labels: list[tuple[str | None, int, int]] = []  # in place of slots: a label, kept, refused; the commonest first


class Measures(msgspec.Struct, frozen=True):
    """Everything that was recorded."""

    rules: list[Rule]
    samples: dict[tuple[str, str], list[Excerpt]]  # by stage and reason
    slices: dict[str, list[dict[str, object]]]  # by column: its values as the page shows them

    def rule(self, stage: str, name: str) -> Rule | None:
        """The rule of a stage, or None."""
        return next((rule for rule in self.rules if (rule.stage, rule.name) == (stage, name)), None)


def measures_of(seen: Observations) -> Measures:
    """Return what was seen as the page asks for it."""
    return Measures(
        [_rule(tally) for tally in seen.tallies],
        {(sample.stage, sample.reason): _excerpts(sample.examples) for sample in seen.samples},
        {column: _values(slices) for column, slices in seen.slices.items()},
    )


def _rule(tally: MeasureTally) -> Rule:
    slots = sorted(slot for slot in tally.slots if slot != NOT_A_NUMBER)
    return Rule(
        stage=tally.stage,
        name=tally.name,
        measure=tally.measure,
        low=tally.low,
        high=tally.high,
        condition=tally.condition,
        amount=tally.amount,
        num_kept=tally.num_kept,
        num_refused=tally.num_refused,
        sum_kept=tally.kept.sum,
        sum_refused=tally.refused.sum,
        nan_refused=tally.refused.slots.get(NOT_A_NUMBER, 0),
        edges=[edge_of(slot) for slot in slots],
        nexts=[_next(slot) for slot in slots],
        kept=[tally.kept.slots.get(slot, 0) for slot in slots],
        refused=[tally.refused.slots.get(slot, 0) for slot in slots],
        nearest=[_window(window) for window in tally.nearest],
        labels=_labels(tally.labels) if tally.labels else [],
    )


def _labels(labels: Labels) -> list[tuple[str | None, int, int]]:
    return [(label, count.kept, count.refused) for label, count in list(labels.by_size())[:MOST_VALUES]]


def _next(slot: int) -> float:
    """The first value beyond a slot, seen from zero; zero is alone, and so is what is beyond all."""
    if not slot or abs(slot) >= BEYOND:
        return edge_of(slot)
    return edge_of(slot + (1 if slot > 0 else -1))


def _window(near: Nearest) -> Window:
    return Window(near.bound, near.threshold, _excerpts(near.kept), _excerpts(near.refused))


def _excerpts(examples: Iterable[Example]) -> list[Excerpt]:
    return [Excerpt(example.id, example.source, example.text, example.value) for example in examples]


def _values(slices: Slices) -> list[dict[str, object]]:
    return [_value(value, outcomes) for value, outcomes in list(slices.by_size())[:MOST_VALUES]]


def _value(value: str | None, outcomes: Outcomes) -> dict[str, object]:
    lost = {
        f"{stage} · {reason}" if stage != reason else stage: amount.documents
        for stage, reasons in outcomes.dropped.items()
        for reason, amount in reasons.items()
    }
    most = max(lost, key=lambda name: (lost[name], name), default=None)
    total = outcomes.total
    return {
        "value": value,
        "total": {"documents": total.documents, "bytes": total.num_bytes},
        "written": {"documents": outcomes.written.documents, "bytes": outcomes.written.num_bytes},
        "most": most,
    }
