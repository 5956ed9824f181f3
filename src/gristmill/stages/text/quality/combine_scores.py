"""`CombineScores`: one score made of several that have nothing in common but their direction.

One model's 0.9 is another model's 0.2, so scores are not combined but their quantiles: the share of the dataset that is
below. The tables that turn scores into quantiles are left in the run directory as `quantiles.json`, for later runs that
are to be judged in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, cast

import numpy as np

from gristmill.errors import ConfigError, nearest
from gristmill.kernels.order_statistics import order_statistics, quantiles, table_ranks
from gristmill.stages.base import AnyStage, CompositeStage, ProcessingStage
from gristmill.stages.exchange.barrier import Barrier, Findings, Rows
from gristmill.stages.text.quality.scores import (
    CheckScores,
    Numbers,
    known_scores,
    load_entry,
    nullable,
    scores_of,
    sorted_numbers,
)
from gristmill.tasks import DocumentBatch, Task

FILE = "quantiles.json"
STEPS = 1000  # of a table: a quantile is right to one in a thousand
_HOW = ("max", "mean", "weights")


@dataclass(eq=False)
class CombineScores(CompositeStage[DocumentBatch, DocumentBatch]):
    """Add one score, from 0 to 1, made of the quantiles of several: the greatest, their mean, or a weighted mean.

    A high value has to mean the same in all of them. A document without one of the scores, or with NaN there, is judged
    by the others; without any, the result is null. `weights` has a number for each field and belongs to how="weights".
    `quantiles` is the path of the `quantiles.json` of an earlier run; without it the pipeline waits here until all
    documents have their scores.
    """

    fields: Sequence[str]
    how: Literal["max", "mean", "weights"] = "max"
    output_field: str = "quality"
    weights: Mapping[str, float] | None = None
    quantiles: str | None = None
    name: str = field(default="combine_scores", kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.fields, str) or not self.fields or len(set(self.fields)) < len(self.fields):
            raise ConfigError(f"{self.name}: expected a list of different columns in fields; got {self.fields!r}")
        if self.how not in _HOW:
            hint = nearest(self.how, _HOW)
            raise ConfigError(f"{self.name}: expected how to be one of {_HOW}; got {self.how!r}{hint}")
        if self.output_field in self.fields:
            raise ConfigError(f"{self.name}: expected output_field to be a new column; got {self.output_field!r}")
        if (self.weights is None) == (self.how == "weights"):
            raise ConfigError(
                f"{self.name}: expected weights with how='weights' only; got {self.weights!r}, {self.how!r}"
            )
        for name, weight in (self.weights or {}).items():
            if name not in self.fields:
                raise ConfigError(
                    f"{self.name}: expected weights for {list(self.fields)}; got {name!r}{nearest(name, self.fields)}"
                )
            if not 0 < weight < float("inf"):
                raise ConfigError(f"{self.name}: expected a weight above 0 for {name!r}; got {weight!r}")
        if missing := [name for name in self.fields if self.weights is not None and name not in self.weights]:
            raise ConfigError(f"{self.name}: expected a weight for each field; got none for {missing}")

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        fields, weights = list(self.fields), None if self.weights is None else dict(self.weights)
        combine = CombineQuantiles(fields, self.how, self.output_field, weights, self._given(), name=self.name)
        if combine.tables is not None:
            return [combine]  # type: ignore[list-item]  # stages are invariant in their tasks
        return [CheckScores(fields), Barrier(), combine]  # type: ignore[list-item]

    def _given(self) -> dict[str, list[float]] | None:
        if self.quantiles is None:
            return None
        entry = load_entry(self.quantiles, self.output_field, who=self.name, wanted="quantiles")
        found = {}
        for name in self.fields:
            if name not in entry:
                got = f"{list(entry)}{nearest(name, list(entry))}"
                raise ConfigError(f"{self.name}: expected quantiles of {name!r} in {self.quantiles!r}; got {got}")
            found[name] = sorted_numbers(entry[name], None, who=self.name, what=f"quantiles of {name!r}")
        return found


@dataclass(eq=False)
class CombineQuantiles(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Turn scores into quantiles and combine them. Without tables it has to look back at all scores first."""

    adds_only_declared_columns: ClassVar[bool] = True

    fields: list[str]
    how: str
    output_field: str
    weights: dict[str, float] | None
    tables: dict[str, list[float]] | None
    name: str = field(default="combine_scores", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.output_field]

    def look_back(self, rows: Rows, findings: Findings) -> AnyStage:
        """Return a copy that knows the quantiles, and write them down."""
        if self.tables is not None:
            return self
        tables = {name: self._table(rows, name) for name in self.fields}
        findings.save(FILE, self.output_field, tables)
        informed = self.with_()
        informed.__dict__["tables"] = tables
        return informed

    def _table(self, rows: Rows, name: str) -> list[float]:
        _, table = order_statistics(
            lambda: known_scores(rows, name, who=self.stage_name()), lambda total: table_ranks(total, STEPS)
        )
        return cast("list[float]", table.tolist())

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if self.tables is None:
            raise ConfigError(f"{self.stage_name()}: expected quantiles; a pipeline finds them, a stage cannot")
        missing = np.ones(task.num_items, np.bool_)
        combined, weight = np.zeros(task.num_items), np.zeros(task.num_items)
        for name in self.fields:
            own, known = self._quantiles(task, name, self.tables[name])
            missing &= ~known
            if self.how == "max":
                combined[known] = np.maximum(combined[known], own[known])
                weight[known] = 1.0
            else:
                times = 1.0 if self.weights is None else self.weights[name]
                combined[known] += times * own[known]
                weight[known] += times
        return task.with_column(self.output_field, nullable(combined / np.where(missing, 1.0, weight), missing))

    def _quantiles(
        self, task: DocumentBatch, name: str, table: list[float]
    ) -> tuple[Numbers, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
        scores = scores_of(task, name, who=self.stage_name())
        known = ~np.isnan(scores)
        return quantiles(np.where(known, scores, 0.0), np.array(table)), known
