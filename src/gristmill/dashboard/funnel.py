"""The funnel as the page shows it: a row for each stage and, below it, one for each of its rules and reasons."""

from collections.abc import Mapping, Sequence

import msgspec

from gristmill.dashboard.measures import Measures, Rule
from gristmill.dashboard.run_data import Books, RunData, StageFlow

Amounts = dict[str, float]  # by unit: documents, bytes, tokens
NOTHING: Amounts = {}
TOKENS = "tokens"


class FunnelRow(msgspec.Struct, frozen=True):
    """A stage, or a rule of it: what came in, what became of it. `in_`, since `in` is a keyword."""

    stage: str
    rule: str | None
    in_: Amounts = msgspec.field(name="in")
    dropped: Amounts
    failed: Amounts
    out: Amounts
    measured: bool = False  # whether the values it decided by were recorded


class Funnel(msgspec.Struct, frozen=True):
    """What became of everything."""

    books: Books
    rows: list[FunnelRow]
    units: list[str]
    slices: list[str]  # columns there are slices by


class StageBytes(msgspec.Struct, frozen=True):
    """Bytes of the documents a stage passed on, and of those it dropped, by reason."""

    out: int = 0
    dropped: dict[str, int] = {}


def funnel_of(run: RunData, measures: Measures, sizes: Mapping[str, StageBytes]) -> Funnel:
    """Return the funnel of what is committed. Tokens are known where a measure says that it counts them."""
    rules = {(rule.stage, rule.name): rule for rule in measures.rules}
    rows = [row for flow in run.documents.funnel for row in _rows(flow, rules, sizes.get(flow.stage, StageBytes()))]
    units = ["documents"]
    units += ["bytes"] if any(size.out for size in sizes.values()) else []
    units += [TOKENS] if any(rule.amount == TOKENS for rule in measures.rules) else []
    return Funnel(run.documents.books, rows, units, [column for column, values in measures.slices.items() if values])


def _rows(flow: StageFlow, rules: "Mapping[tuple[str, str], Rule]", size: StageBytes) -> Sequence[FunnelRow]:
    came, went = flow.documents_in or flow.read, flow.documents_out or flow.written
    dropped_bytes = sum(size.dropped.values())
    own = [rule for (stage, _), rule in rules.items() if stage == flow.stage]
    counted = [rule for rule in own if rule.amount == TOKENS][:1]
    tokens = {TOKENS: sum(rule.sum_kept for rule in counted)}, {TOKENS: sum(rule.sum_refused for rule in counted)}
    kept_tokens, lost_tokens = tokens if counted else ({}, {})
    whole = FunnelRow(
        stage=flow.stage,
        rule=None,
        # What came in is the sum of what became of it: the size of a table says little about the rows left in it.
        in_={"documents": came, "bytes": size.out + dropped_bytes, **_added(kept_tokens, lost_tokens)},
        dropped={"documents": flow.dropped, "bytes": dropped_bytes, **lost_tokens},
        failed={"documents": flow.quarantined},
        out={"documents": went, "bytes": size.out, **kept_tokens},
    )
    lost = {reason.reason: reason.documents for reason in flow.reasons}
    lost |= {rule.name: 0 for rule in own if rule.name not in lost}
    parts = [
        FunnelRow(
            stage=flow.stage,
            rule=name,
            in_=whole.in_,
            dropped={"documents": number, "bytes": size.dropped.get(name, 0)},
            failed=NOTHING,
            out=NOTHING,
            measured=(flow.stage, name) in rules,
        )
        for name, number in lost.items()
    ]
    return [whole, *parts]


def _added(one: Amounts, other: Amounts) -> Amounts:
    return {unit: one[unit] + other[unit] for unit in one}
