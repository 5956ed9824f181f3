"""What `gristmill inspect` prints: rows in a table, one row in full, columns with histograms, two datasets compared.

Everything from a file goes through `printable` and into plain `Text`: a document can neither act on the terminal nor be
read as markup.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gristmill.inspection.labels import as_json
from gristmill.inspection.show import bars, brief, changes, number, whole

if TYPE_CHECKING:
    from gristmill.inspection.columns import Values
    from gristmill.inspection.dataset import Dataset, Located
    from gristmill.inspection.difference import Difference
    from gristmill.inspection.selection import Selection
    from gristmill.inspection.statistics import ColumnStatistics, Statistics

_WIDE = 120  # where there is no terminal to ask
_EXAMPLES = 10


def _console() -> Console:
    width = None if sys.stdout.isatty() else _WIDE
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_rows(dataset: "Dataset", found: "Selection", columns: Sequence[str], *, is_filtered: bool) -> None:
    """One line a row; what is damaged is a line too."""
    names = list(columns) or dataset.columns()
    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("row", *map(brief, names)):
        table.add_column(Text(name), no_wrap=True, overflow="ellipsis", justify="right" if name == "row" else "left")
    for located in found.rows:
        cells = [Text(str(dataset.row_at(located.place))), *_cells(located, names)]
        table.add_row(*cells)
    console.print(table)
    console.print(Text(_below(dataset, found, is_filtered=is_filtered)))


def _cells(located: "Located", names: Sequence[str]) -> list[Text]:
    from gristmill.inspection.columns import of_row

    if located.row.damage:
        return [Text(brief(f"damaged: {located.row.damage} {located.row.raw}"), style="red")]
    return [Text(brief(of_row(located.row.values, name))) for name in names]


def _below(dataset: "Dataset", found: "Selection", *, is_filtered: bool) -> str:
    rows = f"{len(found.rows):,} of {dataset.num_rows()} rows in {len(dataset.paths):,} files"
    return f"{rows}; {found.said()}" if is_filtered else rows


def print_whole(dataset: "Dataset", found: "Selection", columns: Sequence[str]) -> None:
    """All of a row, every column under its name."""
    console = _console()
    for located in found.rows:
        title = f"row {dataset.row_at(located.place)} · {brief(dataset.place_name(located.place))}"
        console.print(Text(title, style="bold"))
        if located.row.damage:
            console.print(Text(f"damaged: {brief(located.row.damage)}", style="red"))
            console.print(Text(whole(located.row.raw)), soft_wrap=True)
        for name, value in _chosen(located.row.values, columns).items():
            console.print(Text(brief(name), style="bold cyan"))
            console.print(Text(whole(value)), soft_wrap=True)


def _chosen(values: "Values", columns: Sequence[str]) -> "Values":
    from gristmill.inspection.columns import of_row

    return {name: of_row(values, name) for name in columns} if columns else values


def rows_as_json(dataset: "Dataset", found: "Selection", columns: Sequence[str]) -> dict[str, object]:
    """The rows for a program."""
    rows = [
        {
            "row": dataset.row_at(located.place).rows,
            "row_is_exact": dataset.row_at(located.place).is_exact,
            "place": dataset.place_name(located.place),
            "values": as_json(_chosen(located.row.values, columns)),
            **({"damage": located.row.damage, "raw": located.row.raw} if located.row.damage else {}),
        }
        for located in found.rows
    ]
    total = dataset.num_rows()
    return {
        "rows": rows, "num_rows": total.rows, "num_rows_is_exact": total.is_exact, "num_read": found.num_read,
        "num_damaged": found.num_damaged, "num_of_other_kind": found.num_of_other_kind,
    }  # fmt: skip


def print_statistics(found: "Statistics") -> None:
    """A line a column, and below it its histogram or its most frequent values."""
    console = _console()
    for column in found.columns:
        console.print(
            Text(f"{brief(column.name)}  ", style="bold cyan") + Text(_about(column), style="not bold default")
        )
        if column.histogram is not None and column.measure:
            console.print(Text(bars(column.histogram)), no_wrap=True)
        for value, count in column.frequent:
            console.print(Text(f"  {count / column.num_rows:6.1%}  {brief(value)}"), no_wrap=True, overflow="ellipsis")
    console.print(Text(found.said()))


def _about(column: "ColumnStatistics") -> str:
    parts: list[str] = [column.kind]
    parts += [f"{column.num_null / column.num_rows:.1%} null"] if column.num_null else []
    parts += [f"{column.num_of_other_kind:,} of another kind"] if column.num_of_other_kind else []
    parts += [f"{column.num_distinct:,} distinct"] if column.num_distinct is not None else []
    if column.quantiles:
        least, _, low, median, high, _, greatest = map(number, column.quantiles)
        parts.append(f"{column.measure}: {least} … {low} · {median} · {high} … {greatest}")
        parts += [] if column.mean is None else [f"mean {number(column.mean)}"]
    return ", ".join(parts)


def print_difference(here: "Dataset", there: "Dataset", found: "Difference", id_field: str) -> None:
    """The counts, then some rows of each kind with what changed in them."""
    console = _console()
    counts = (
        (found.same, "the same in both"), (found.changed, "changed"), (found.only_here, "only here"),
        (found.only_there, "only there"), (found.repeated, "ids several times in one of them"),
        (found.without_id, f"rows without {brief(id_field)}"), (found.damaged, "damaged rows, not compared"),
    )  # fmt: skip
    for count, words in counts:
        if count or words in {"the same in both", "changed", "only here", "only there"}:
            console.print(Text(f"{count:12,}  {words}"))
    for words, dataset, places in (
        ("only here", here, found.here_examples),
        ("only there", there, found.there_examples),
    ):
        ids = [str(located.row.values.get(id_field)) for place in places for located in dataset.page(place, 1)]
        if ids:
            console.print(Text(f"{words}: {', '.join(map(brief, ids[:_EXAMPLES]))}"))
    for one, other in found.changed_examples:
        rows = here.page(one, 1)[0].row.values, there.page(other, 1)[0].row.values
        console.print(Text(f"changed: {brief(rows[0].get(id_field))}", style="bold"))
        for line in changes(*rows):
            console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis")
