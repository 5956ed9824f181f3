"""`Texts`: a column of texts on its way through filters and rule sets, with everything measured on it kept.

Documents are only ever dropped on the way, so what was counted for those left earlier serves those left now. A
rule set that changes texts makes a new column, on which nothing has been counted. No rule lives here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.stages.text.judging.statistics import Pass, Statistic, TextColumn, plan_passes, run_pass
from gristmill.stages.text.judging.tokens import EnglishTokenizer, Tokens
from gristmill.tasks.text_columns import from_bytes_and_offsets

T = TypeVar("T")

Rows = NDArray[np.int64]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Texts:
    """The texts, N of them. `planned` says which pass counts what, for all that will be asked."""

    column: TextColumn
    tokenizer: Callable[[], EnglishTokenizer] = EnglishTokenizer  # made when the first text is cut
    planned: Mapping[Statistic, Pass] = field(default_factory=dict)
    _counts: dict[Statistic, Counts] = field(default_factory=dict)
    _made: dict[object, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.column)

    def text(self, row: int) -> str:
        """Return one text as Python has it."""
        return self.column.data[self.column.starts[row] : self.column.stops[row]].tobytes().decode()

    def rewritten(self, column: TextColumn) -> "Texts":
        """Return other texts of the same documents; those that were missing stay so."""
        column = TextColumn(column.data, column.starts, column.stops, self.column.nulls)
        return Texts(column, self.tokenizer, self.planned)

    def to_arrow(self, rows: Rows) -> pa.Array:
        """Return some of the texts as an array of strings."""
        column = self.column.take(rows)
        bounds = zip(column.starts.tolist(), column.stops.tolist(), strict=True)
        pieces = [column.data[start:stop] for start, stop in bounds]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(column.stops - column.starts)])
        return from_bytes_and_offsets(np.concatenate([np.zeros(0, np.uint8), *pieces]), offsets, ~column.is_null)

    def counts(self, wanted: Mask, statistics: tuple[Statistic, ...]) -> list[Counts]:
        """Return int64[N] for each statistic, right for the texts that are wanted; nothing is counted twice."""
        unknown = [found for found in statistics if found not in self._counts]
        if unknown:
            rows, column = self._wanted(wanted)
            for made in dict.fromkeys(self._passes(unknown)):
                for found, values in run_pass(made, column).items():
                    # What another pass has counted before, it has counted for more texts.
                    self._counts.setdefault(found, values if len(rows) == len(self) else self.spread(rows, values)[0])
        return [self._counts[found] for found in statistics]

    def _passes(self, unknown: list[Statistic]) -> list[Pass]:
        passes = self.planned if all(found in self.planned for found in unknown) else plan_passes(unknown)
        return [passes[found] for found in unknown]

    def tokens(self, wanted: Mask) -> tuple[Rows, Tokens]:
        """The English tokens of the texts that are wanted, and which those are: the same as at the first call."""

        def cut() -> tuple[Rows, Tokens]:
            rows, column = self._wanted(wanted)
            return rows, self.tokenizer().cut(column)

        return self.remember("tokens", cut)

    def spread(self, rows: Rows, counts: Counts) -> Counts:
        """Return int64[columns, N] with counts at some rows and 0 at the others."""
        table = counts if counts.ndim == 2 else counts[:, np.newaxis]
        whole = np.zeros((table.shape[1], len(self)), np.int64)
        whole[:, rows] = table.T
        return whole

    def remember(self, what: object, make: Callable[[], T]) -> T:
        """Return what was made for these texts under this name, or make it."""
        if what not in self._made:
            self._made[what] = make()
        return cast("T", self._made[what])

    def _wanted(self, wanted: Mask) -> tuple[Rows, TextColumn]:
        rows = np.flatnonzero(wanted)
        return rows, self.column if len(rows) == len(self) else self.column.take(rows)
