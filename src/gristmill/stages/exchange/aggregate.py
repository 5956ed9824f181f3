"""`Aggregate`: one row for each value of a key, over the whole dataset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.exchange.exchange import Exchange
from gristmill.tasks import DocumentBatch, Task

FUNCTIONS = ("count", "count_distinct", "first", "last", "list", "max", "mean", "min", "sum", "stddev")


@dataclass(eq=False)
class Aggregate(CompositeStage[DocumentBatch, DocumentBatch]):
    """Group all rows by the columns `by`; `compute` says what to compute: `{"pages": ("url", "count")}`.

    The functions are Arrow's: count, count_distinct, first, last, list, max, mean, min, sum, stddev. Rows come out
    ordered by the key within each partition. A null is a value of the key like any other.
    """

    by: str | list[str]
    compute: Mapping[str, tuple[str, str]]
    num_partitions: int | None = None
    name: str = "aggregate"

    def __post_init__(self) -> None:
        for column, (_, function) in self.compute.items():
            if function not in FUNCTIONS:
                raise ConfigError(
                    f"{self.name}: expected the function of {column!r} to be one of {FUNCTIONS}; "
                    f"got {function!r}{nearest(function, FUNCTIONS)}"
                )
            if column in Exchange(self.by).keys:
                raise ConfigError(f"{self.name}: expected other names in compute than those of the key; got {column!r}")

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        exchange = Exchange(self.by, self.num_partitions)
        return [exchange, AggregateRows(exchange.keys, dict(self.compute), name=self.name)]  # type: ignore[list-item]


@dataclass(eq=False)
class AggregateRows(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Group the rows of one batch, which holds all rows of the keys it has."""

    rows_are_independent: ClassVar[bool] = False

    by: list[str]
    compute: dict[str, tuple[str, str]]
    name: str = field(default="aggregate", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys([*self.by, *(source for source, _ in self.compute.values())]))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.compute)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        # Arrow names what it computes "source_function". Numbering the sources keeps those names apart from
        # the names of columns, and from each other if the same is computed twice.
        keys = [f"key{number}" for number in range(len(self.by))]
        values = [f"value{number}" for number in range(len(self.compute))]
        columns = [*self.by, *(source for source, _ in self.compute.values())]
        table = pa.Table.from_arrays([task.column(name) for name in columns], names=[*keys, *values])
        wanted = [(value, how) for value, (_, how) in zip(values, self.compute.values(), strict=True)]
        # One thread: with several, `first` and `list` would depend on their race.
        grouped = table.group_by(keys, use_threads=False).aggregate(wanted)
        computed = [grouped.column(f"{value}_{how}") for value, how in wanted]
        rows = pa.Table.from_arrays(
            [*(grouped.column(key) for key in keys), *computed], names=[*self.by, *self.compute]
        )
        return DocumentBatch(task.dataset_name, rows.sort_by([(name, "ascending") for name in self.by]))
