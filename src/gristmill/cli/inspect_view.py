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
from gristmill.inspection.show import brief, whole
from gristmill.inspection.words import difference_lines, statistics_lines

if TYPE_CHECKING:
    from gristmill.inspection.columns import Values
    from gristmill.inspection.dataset import Dataset, Located
    from gristmill.inspection.difference import Difference
    from gristmill.inspection.selection import Selection
    from gristmill.inspection.statistics import Statistics

_WIDE = 120  # where there is no terminal to ask


def _console() -> Console:
    width = None if sys.stdout.isatty() else _WIDE
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_rows(dataset: "Dataset", found: "Selection", columns: Sequence[str], *, is_filtered: bool) -> None:
    """One line per row; what is damaged is a line too."""
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
    num_files = len(dataset.paths)
    rows = f"{len(found.rows):,} of {dataset.num_rows()} rows in {num_files:,} file{'s' if num_files != 1 else ''}"
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
    """A block per column, and what the numbers are from."""
    console = _console()
    for name, lines in statistics_lines(found):
        title = Text(f"{name}  ", style="bold cyan") if name else Text()
        console.print(title + Text(lines, style="not bold default"), no_wrap=True, overflow="ellipsis")


def print_difference(here: "Dataset", there: "Dataset", found: "Difference", id_field: str) -> None:
    """The counts, then some rows of each kind with what changed in them."""
    console = _console()
    for line in difference_lines(here, there, found, id_field):
        console.print(Text(line), no_wrap=True, overflow="ellipsis")
