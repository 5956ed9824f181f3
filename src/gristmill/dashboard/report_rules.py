"""The sections of a report on rules and slices: a card per rule with histogram and examples, a table per column."""

from collections.abc import Iterator, Sequence

from gristmill.dashboard.drawing import histogram_chart, split_bar
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.run_data import RunData
from gristmill.dashboard.run_rules import (
    ExampleShown,
    LabelShown,
    RuleData,
    SampleShown,
    SliceTable,
    SliceValue,
    Window,
)
from gristmill.metrics.amounts import share, size
from gristmill.metrics.tally import shown

NAME_CHARS = 200  # of the name of a stage, a rule, a source
VALUES_IN_PAGE = 30


def name_of(content: str) -> Html:
    """A name as somebody else gave it."""
    return tag("bdi", text(content, NAME_CHARS))


def rules_section(run: RunData, prefix: str) -> Html:
    """Every measure that was taken, in the order of the pipeline."""
    documents = run.documents
    samples = {(sample.stage, sample.reason): sample for sample in documents.samples}
    ruled = {(rule.stage, rule.name) for rule in documents.rules}
    others = [sample for key, sample in samples.items() if key not in ruled]
    key = joined(tag("span", class_="key k"), "kept ", tag("span", class_="key g"), "refused")
    told = (
        "What each rule measured on the documents that reached it. The dashed line is the threshold. Bars grow with "
        "the square root of the count, so that rare values are seen."
    )
    return joined(
        tag("p", told),
        tag("p", key, class_="soft"),
        _overview(documents.rules, prefix),
        *(
            _rule(rule, samples.get((rule.stage, rule.name)), f"{prefix}rule-{number}")
            for number, rule in enumerate(documents.rules)
        ),
        *(_other_reason(sample) for sample in others),
    )


def _overview(rules: Sequence[RuleData], prefix: str) -> Html | None:
    if not rules:
        return None
    rows: list[list[Child]] = []
    for number, rule in enumerate(rules):
        link = tag("a", text(rule.name, NAME_CHARS), href=f"#{prefix}rule-{number}")
        rows.append(
            [
                link,
                text(rule.condition or "", NAME_CHARS),
                f"{rule.measured:,}",
                f"{rule.refused:,}",
                share(rule.refused, rule.measured),
            ]
        )
    return table(["rule", "keeps", "measured", "refused", "of these"], rows, numbers=2)


def _rule(rule: RuleData, sample: SampleShown | None, anchor: str) -> Html:
    thresholds = [bound for bound in (rule.low, rule.high) if bound is not None]
    said = f"{rule.measured:,} documents measured, {rule.refused:,} refused ({share(rule.refused, rule.measured)})."
    if not rule.decides:
        said = f"{rule.measured:,} documents measured; nothing is dropped by it."
    if rule.not_numbers:
        said += f" {rule.not_numbers:,} have no number."
    keeps = joined("Keeps ", tag("code", text(rule.condition, NAME_CHARS)), ". ") if rule.condition else None
    figures = {"least": rule.least, **rule.quantiles, "greatest": rule.greatest}
    shown_figures = {name: value for name, value in figures.items() if value is not None}
    return tag(
        "div",
        tag("h3", name_of(rule.name), tag("span", " in ", name_of(rule.stage), class_="soft")),
        tag("p", keeps, said),
        histogram_chart(rule.histogram, thresholds) if rule.histogram.bars else None,
        table(list(shown_figures), [[shown(value) for value in shown_figures.values()]], numbers=0, class_="figures")
        if shown_figures
        else None,
        _labels(rule.labels),
        *(_window(window, rule) for window in rule.nearest),
        _sample(sample),
        class_="rule",
        id=anchor,
    )


def _labels(labels: Sequence[LabelShown]) -> Html | None:
    if not labels:
        return None
    rows: list[list[Child]] = [
        [
            tag("em", "none") if found.label is None else name_of(found.label),
            split_bar(found.kept, found.kept + found.refused),
            f"{found.kept:,}",
            f"{found.refused:,}",
        ]
        for found in labels[:VALUES_IN_PAGE]
    ]
    left = len(labels) - len(rows)
    return joined(
        table(["label", "", "kept", "refused"], rows, numbers=2),
        tag("p", f"and {left:,} more labels", class_="soft") if left else None,
    )


def _window(window: Window, rule: RuleData) -> Html | None:
    if not window.kept and not window.refused:
        return None
    which = {"low": "least", "high": "greatest"}[window.bound] if len(rule.nearest) > 1 else ""
    at = f" at the {which} value kept, {shown(window.threshold)}" if which else f" at {shown(window.threshold)}"
    sides = (("Just kept", window.kept, "k"), ("Just dropped", window.refused, "g"))
    columns = (
        tag("div", tag("h4", f"{title}{at}"), *(_example(example, kind, rule.measure) for example in examples))
        for title, examples, kind in sides
        if examples
    )
    return tag("details", tag("summary", f"Documents next to the threshold{at}"), tag("div", *columns, class_="sides"))


def _sample(sample: SampleShown | None) -> Html | None:
    if sample is None or not sample.examples:
        return None
    examples = (_example(example, "g", "") for example in sample.examples)
    return tag("details", tag("summary", "A sample of what was dropped"), *examples)


def _other_reason(sample: SampleShown) -> Html:
    """What was dropped without a measure: by a stage that only says why."""
    title = tag("h3", name_of(sample.reason), tag("span", " in ", name_of(sample.stage), class_="soft"))
    return tag("div", title, _sample(sample), class_="rule")


def _example(example: ExampleShown, kind: str, measure: str) -> Html:
    value = "" if example.value is None else f"{shown(example.value)} {measure}".strip()
    where = " · ".join(part for part in (value, example.id, example.source or example.place) if part)
    return tag(
        "div",
        tag("div", text(where, 300), class_="place"),
        tag("q", text(example.text), dir="auto") if example.text else None,
        class_=f"example {kind}",
    )


def slices_section(run: RunData) -> Html:
    """What became of documents by source, language, or whichever column was asked for."""
    return joined(*(_slices(found) for found in run.documents.slices))


def _slices(found: SliceTable) -> Html:
    rows: list[list[Child]] = [list(_slice_row(value)) for value in found.values[:VALUES_IN_PAGE]]
    left = found.num_values - len(rows)
    head: list[Child] = ["value", "", "commonest reasons to leave", "documents", "kept", "of these", "size", "kept"]
    return joined(
        tag("h3", "By ", tag("code", text(found.column, NAME_CHARS))),
        tag("div", table(head, rows, numbers=3), class_="wide"),
        tag("p", f"and {left:,} more values", class_="soft") if left else None,
    )


def _slice_row(value: SliceValue) -> Iterator[Child]:
    yield tag("em", "none") if value.value is None else name_of(value.value)
    yield split_bar(value.written, value.documents)
    yield ", ".join(f"{loss.reason[:60]} {loss.documents:,}" for loss in value.losses[:3])
    yield f"{value.documents:,}"
    yield f"{value.written:,}"
    yield share(value.written, value.documents)
    yield size(value.num_bytes)
    yield size(value.written_bytes)
