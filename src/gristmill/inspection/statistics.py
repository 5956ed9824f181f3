"""What the columns of a dataset hold, from a sample of at most 20,000 rows: kinds, nulls, quantiles, histograms.

Of numbers the values are measured, of texts the characters, of lists the elements. The sample is taken in a few runs of
neighbouring rows, because each place costs reading what is before it; where neighbours resemble each other it says less
than as many rows chosen one by one. Wherever these numbers are shown, it is said how many rows they are from.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gristmill.inspection.columns import Kind, kind_of_value, of_row
from gristmill.inspection.dataset import Dataset, Located
from gristmill.inspection.wanted import Wanted

MOST_ROWS = 20_000
_BINS = 20
_FREQUENT = 5
_SHORT_CHARS = 80  # longer texts are not counted as values
_MOST_VALUES = 2_000
_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
Basis: TypeAlias = Literal["all", "sampled", "first"]  # first: of the rows a condition holds for
MEASURES: dict[str, str] = {"number": "value", "text": "characters", "list": "elements", "bytes": "bytes"}


@dataclass(frozen=True)
class Histogram:
    """Counts between edges; the last bin holds its upper edge too."""

    edges: Sequence[float]
    counts: Sequence[int]
    is_logarithmic: bool


@dataclass(frozen=True)
class ColumnStatistics:
    """One column. `quantiles` are the least value, 5, 25, 50, 75 and 95 %, and the greatest."""

    name: str
    kind: Kind
    num_rows: int
    num_null: int
    num_of_other_kind: int
    measure: str
    mean: float | None
    quantiles: Sequence[float]
    histogram: Histogram | None
    frequent: Sequence[tuple[str, int]]  # values, if they are short and few
    num_distinct: int | None


@dataclass(frozen=True)
class Statistics:
    """The columns, and what they were measured on."""

    num_rows: int
    num_damaged: int
    basis: Basis
    columns: Sequence[ColumnStatistics]

    def said(self) -> str:
        """What the numbers are from, in words."""
        damaged = f", {self.num_damaged:,} damaged lines left out" if self.num_damaged else ""
        which = {"all": f"all {self.num_rows:,} rows", "sampled": f"{self.num_rows:,} sampled rows"}
        return f"from {which.get(self.basis, f'the first {self.num_rows:,} rows that are wanted')}{damaged}"


def measure(
    dataset: Dataset,
    columns: Sequence[str],
    *,
    seed: int,
    wanted: Wanted | None = None,
    most_rows: int = MOST_ROWS,
    go_on: Callable[[float], bool] = lambda _: True,
) -> Statistics:
    """Measure columns on a sample, the same for the same seed; of wanted rows, on the first ones there are.

    `go_on` is told how far the search for wanted rows is, and ends it by returning False.
    """
    kinds = dataset.kinds()
    collected = {name: _Column(kinds.get(name, "unknown")) for name in columns}
    num_rows = num_damaged = 0
    chosen = dataset.sample(most_rows, seed=seed) if wanted is None or wanted.is_all else _first(dataset, wanted, go_on)
    for located in islice((row for run in chosen for row in run), most_rows):
        if located.row.damage:
            num_damaged += 1
            continue
        num_rows += 1
        for name, column in collected.items():
            column.add(of_row(located.row.values, name))
    basis: Basis = (
        "first" if wanted is not None and not wanted.is_all else "all" if dataset.has_at_most(most_rows) else "sampled"
    )
    return Statistics(num_rows, num_damaged, basis, [c.finished(name) for name, c in collected.items()])


def _first(dataset: Dataset, wanted: Wanted, go_on: Callable[[float], bool]) -> Iterator[Sequence[Located]]:
    for looked in dataset.look(dataset.start, wanted):
        yield looked.rows
        if not go_on(looked.share):
            return


@dataclass
class _Column:
    kind: Kind
    num_rows: int = 0
    num_null: int = 0
    others: int = 0
    measured: list[float] = field(default_factory=list)
    values: "Counter[str] | None" = field(default_factory=Counter)

    def add(self, value: object) -> None:
        self.num_rows += 1
        if value is None:
            self.num_null += 1
            return
        if self.kind in {"number", "text", "flag", "list"} and kind_of_value(value) not in {self.kind, "unknown"}:
            self.others += 1
            return
        size = _size(value)
        if size is not None:
            self.measured.append(size)
        self._count_value(value)

    def _count_value(self, value: object) -> None:
        if self.values is None:
            return
        text = value if isinstance(value, str) else str(value) if not isinstance(value, list | dict | bytes) else None
        if text is None or len(text) > _SHORT_CHARS or len(self.values) > _MOST_VALUES:
            self.values = None
        else:
            self.values[text] += 1

    def finished(self, name: str) -> ColumnStatistics:
        numbers = np.array([n for n in self.measured if math.isfinite(n)], np.float64)
        frequent = self.values.most_common(_FREQUENT) if self.values and len(self.values) < self.num_rows else []
        return ColumnStatistics(
            name, self.kind, self.num_rows, self.num_null, self.others, MEASURES.get(self.kind, ""),
            float(numbers.mean()) if len(numbers) else None,
            [float(q) for q in np.quantile(numbers, _QUANTILES)] if len(numbers) else [],
            histogram(numbers), frequent, None if self.values is None else len(self.values),
        )  # fmt: skip


def _size(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return float(len(value)) if isinstance(value, str | list | bytes) else None


def histogram(numbers: NDArray[np.float64]) -> Histogram | None:
    """At most 20 bins of equal width, or of equal ratio where most values are far below the greatest."""
    if not len(numbers):
        return None
    least, greatest = float(numbers.min()), float(numbers.max())
    if least == greatest:
        return Histogram([least, greatest], [len(numbers)], is_logarithmic=False)
    is_whole = bool((numbers == np.floor(numbers)).all())
    is_skewed = least > 0 and greatest > 20 * float(np.median(numbers))
    if is_skewed:
        edges = np.geomspace(least, greatest, _BINS + 1)
    elif is_whole and greatest - least < 2**50:
        step = math.ceil((greatest - least + 1) / _BINS)
        edges = np.arange(least, greatest + step + 1, step)
    else:
        with np.errstate(over="ignore"):
            edges = np.linspace(least / 2, greatest / 2, _BINS + 1) * 2  # the distance of huge numbers would overflow
    edges[0], edges[-1] = min(edges[0], least), max(edges[-1], greatest)
    counts, _ = np.histogram(numbers, edges)
    return Histogram([float(edge) for edge in edges], [int(count) for count in counts], is_logarithmic=is_skewed)
