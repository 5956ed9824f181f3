"""Statistics and differences in lines of text, as they are printed and shown in a terminal; safe to print."""

from collections.abc import Iterator

from gristmill.inspection.dataset import Dataset
from gristmill.inspection.difference import Difference
from gristmill.inspection.show import bars, brief, changes, number
from gristmill.inspection.statistics import ColumnStatistics, Statistics


def statistics_lines(found: Statistics) -> Iterator[tuple[str, str]]:
    """Yield for each column its name and what it holds; the last one has no name, and says what the rest is from."""
    for column in found.columns:
        lines = [_about(column)]
        if column.histogram is not None and column.measure:
            lines.append(bars(column.histogram))
        lines += [f"  {count / column.num_rows:6.1%}  {brief(value)}" for value, count in column.frequent]
        yield brief(column.name), "\n".join(lines)
    yield "", found.said()


def _about(column: ColumnStatistics) -> str:
    parts: list[str] = [column.kind]
    parts += [f"{column.num_null / column.num_rows:.1%} null"] if column.num_null else []
    parts += [f"{column.num_of_other_kind:,} of another kind"] if column.num_of_other_kind else []
    parts += [f"{column.num_distinct:,} distinct"] if column.num_distinct is not None else []
    if column.quantiles and column.measure:
        least, _, low, median, high, _, greatest = map(number, column.quantiles)
        parts.append(f"{column.measure}: {least} … {low} · {median} · {high} … {greatest}")
        parts += [] if column.mean is None else [f"mean {number(column.mean)}"]
    return ", ".join(parts)


def difference_lines(here: Dataset, there: Dataset, found: Difference, id_field: str) -> Iterator[str]:
    """Yield the counts, then some ids of each kind with what changed in them."""
    yield from (f"{found.same:12,}  the same in both", f"{found.changed:12,}  changed")
    yield from (f"{found.only_here:12,}  only here", f"{found.only_there:12,}  only there")
    more = (
        (found.repeated, "ids several times in one of them"), (found.without_id, f"rows without {brief(id_field)}"),
        (found.damaged, "damaged rows, not compared"),
    )  # fmt: skip
    yield from (f"{count:12,}  {words}" for count, words in more if count)
    for words, dataset, places in (
        ("only here", here, found.here_examples),
        ("only there", there, found.there_examples),
    ):
        ids = [brief(located.row.values.get(id_field)) for place in places for located in dataset.page(place, 1)]
        if ids:
            yield f"{words}: {', '.join(ids)}"
    for one, other in found.changed_examples:
        rows = here.page(one, 1)[0].row.values, there.page(other, 1)[0].row.values
        yield f"changed: {brief(rows[0].get(id_field))}"
        yield from (f"  {line}" for line in changes(*rows))
