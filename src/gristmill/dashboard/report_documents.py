"""The sections of a report about documents: the same bytes for any number of workers, crash and executor."""

from collections.abc import Iterator

from gristmill.dashboard.drawing import waterfall
from gristmill.dashboard.markup import Child, Html, joined, table, tag, text
from gristmill.dashboard.report_rules import name_of, rules_section, slices_section
from gristmill.dashboard.run_data import ErrorGroup, RunData, StageFlow
from gristmill.metrics.amounts import share, size
from gristmill.metrics.tally import in_words, shown

Section = tuple[str, Html]


def documents_sections(run: RunData, prefix: str = "") -> list[Section]:
    """Return what there is to say: the funnel always, the others where there is something."""
    sections = [("funnel", _funnel(run))]
    if run.documents.rules or run.documents.samples:
        sections.append(("rules", rules_section(run, prefix)))
    if run.documents.slices:
        sections.append(("slices", slices_section(run)))
    if run.documents.quarantine:
        sections.append(("quarantine", _quarantine(run)))
    return sections


def _funnel(run: RunData) -> Html:
    books = run.documents.books
    total = books.read + books.created
    head: list[Child] = ["stage, and why documents left", "", "documents", "of all", "left", "size"]
    rows = [_row(row, "bar") for row in _funnel_rows(run, total)]
    header = tag("tr", *(tag("th", cell, class_="n" if at > 1 else None) for at, cell in enumerate(head)))
    key = joined(
        tag("span", class_="key k"),
        "left ",
        tag("span", class_="key g"),
        "dropped ",
        tag("span", class_="key a"),
        "quarantined",
    )
    sums = (
        f"{books.read:,} read + {books.created:,} created = {books.written:,} kept + {books.dropped:,} dropped + "
        f"{books.quarantined:,} quarantined"
    )
    notes = [note for stage in run.documents.funnel for note in _own_numbers(stage)]
    return joined(
        tag("p", key, class_="soft"),
        tag("div", tag("table", tag("thead", header), tag("tbody", *rows)), class_="wide"),
        tag("p", sums, class_="soft"),
        *(tag("p", line) for line in _amounts(run)),
        joined(tag("h3", "What stages count"), table(["stage", "", ""], notes, numbers=9)) if notes else None,
    )


def _row(cells: tuple[str, list[Child]], bar: str) -> Html:
    kind, row = cells
    return tag(
        "tr", *(tag("td", cell, class_=(None, bar)[at] if at < 2 else "n") for at, cell in enumerate(row)), class_=kind
    )


def _funnel_rows(run: RunData, total: int) -> Iterator[tuple[str, list[Child]]]:
    left = 0
    for stage in run.documents.funnel:

        def row(name: Html, bar: Html, number: str, part: str, num_bytes: int | None) -> list[Child]:
            return [name, bar, number, part, f"{left:,}", size(num_bytes) if num_bytes else ""]  # noqa: B023

        for what, number, sign in (("read", stage.read, ""), ("created", stage.created, "+")):
            left += number
            if number:
                said = f"{sign}{number:,}"
                bytes_in = stage.bytes_in if what == "read" else None
                yield "stage", row(_stage(stage, what), waterfall(left, 0, total), said, share(number, total), bytes_in)
        gone = [(reason.reason, reason.documents, reason.num_bytes, "gone") for reason in stage.reasons]
        gone += [("quarantined", stage.quarantined, None, "aside")] if stage.quarantined else []
        if gone and not stage.read:
            said = f"−{stage.dropped + stage.quarantined:,}"
            yield "stage", row(_stage(stage, ""), waterfall(left, 0, total), said, "", stage.bytes_in)
        for reason, number, num_bytes, kind in gone:
            left -= number
            bar = waterfall(left, number, total, kind)
            yield "reason", row(name_of(reason), bar, f"−{number:,}", share(number, total), num_bytes)
        if stage.written:
            bar, part = waterfall(left, 0, total), share(stage.written, total)
            yield "stage", row(_stage(stage, "kept"), bar, f"{stage.written:,}", part, stage.bytes_in)


def _amounts(run: RunData) -> Iterator[str]:
    """What else documents are counted in, where a measure says that its sums are an amount."""
    for rule in run.documents.rules:
        if rule.amount:
            whole = rule.kept_sum + rule.refused_sum
            yield (
                f"In {rule.amount}, as {rule.name} counts them: {whole:,.0f} reached it, {rule.kept_sum:,.0f} went on "
                f"({share(rule.kept_sum, whole)})."
            )


def _stage(stage: StageFlow, what: str) -> Html:
    return joined(name_of(stage.stage), tag("span", f" {what}", class_="soft") if what else None)


def _own_numbers(stage: StageFlow) -> Iterator[list[Child]]:
    """What the author of a stage counts and observes."""
    for name, number in stage.counted.items():
        yield [name_of(stage.stage), name_of(name), shown(number)]
    for name, figures in stage.observed.items():
        yield [name_of(stage.stage), name_of(name), in_words(figures)]


def _quarantine(run: RunData) -> Html:
    groups = run.documents.quarantine
    return joined(
        tag(
            "p", "Documents that a stage failed on, by what went wrong. They are kept with their source and traceback."
        ),
        *(_error(group) for group in groups),
    )


def _error(group: ErrorGroup) -> Html:
    many = f"{group.documents:,} document{'s' * (group.documents != 1)}"
    if group.lost_parts:
        parts = f"{group.lost_parts:,} part{'s' * (group.lost_parts != 1)} of files ({size(group.lost_bytes)})"
        many = parts if not group.documents else f"{many} and {parts}"
    where = joined("For example ", tag("span", text(group.place, 500), class_="place")) if group.place else None
    return tag(
        "div",
        tag("h3", many, " in ", name_of(group.stage), ": ", tag("bdi", text(group.kind, 120))),
        tag("p", tag("bdi", text(group.message, 500))) if group.message else None,
        tag("p", where) if where else None,
        tag("details", tag("summary", "Traceback"), tag("pre", text(group.traceback))) if group.traceback else None,
        class_="rule",
    )
