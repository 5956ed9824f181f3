"""The funnel as the page shows it: a row for each stage and, below it, one for each of its rules and reasons."""

from collections.abc import Sequence

import msgspec

from gristmill.dashboard.measures import Measures
from gristmill.dashboard.run_data import Books, RunData, StageFlow

Amounts = dict[str, float]  # by unit: documents, bytes, tokens
NOTHING: Amounts = {}


class FunnelRow(msgspec.Struct, frozen=True):
    """A stage, or a rule of it: what came in, what became of it. `in_`, since `in` is a word of the language."""

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


def funnel_of(run: RunData, measures: Measures) -> Funnel:
    """Return the funnel of what is committed."""
    rules = {(rule.stage, rule.name) for rule in measures.rules}
    rows = [row for flow in run.documents.funnel for row in _rows(flow, rules)]
    units = ["documents", "bytes"]
    return Funnel(run.documents.books, rows, units, [column for column, values in measures.slices.items() if values])


def _rows(flow: StageFlow, rules: "set[tuple[str, str]]") -> Sequence[FunnelRow]:
    came = flow.documents_in or flow.read
    went = flow.documents_out or flow.written
    whole = FunnelRow(
        stage=flow.stage,
        rule=None,
        in_={"documents": came, "bytes": flow.bytes_in},
        dropped={"documents": flow.dropped},
        failed={"documents": flow.quarantined},
        out={"documents": went},
    )
    parts = [
        FunnelRow(
            stage=flow.stage,
            rule=reason.reason,
            in_=whole.in_,
            dropped={"documents": reason.documents},
            failed=NOTHING,
            out=NOTHING,
            measured=(flow.stage, reason.reason) in rules,
        )
        for reason in flow.reasons
    ]
    idle = [name for stage, name in rules if stage == flow.stage and name not in {part.rule for part in parts}]
    parts += [
        FunnelRow(flow.stage, name, whole.in_, {"documents": 0}, NOTHING, NOTHING, measured=True)
        for name in sorted(idle)
    ]
    return [whole, *parts]
