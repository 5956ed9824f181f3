"""`Texts`: a column of texts on its way through rule sets, with what several rules measure on it computed once.

Nothing here knows a rule.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import is_null
from gristmill.stages.text.rules.tokenizer import Tokenizer, Tokens
from gristmill.stages.text.statistics.measure import count_characters
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.stages.text.statistics.texts_of_lines import unparsed_texts
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_bytes_and_offsets

T = TypeVar("T")

Rows = NDArray[np.int64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Texts:
    """The texts; a missing one is empty there and true in `missing`."""

    column: TextColumn
    missing: NDArray[np.bool_]  # [N]
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    _remembered: dict[object, object] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: DocumentBatch, name: str, tokenizer: Tokenizer) -> "Texts":
        """Take a column of Arrow's text types; what is not parsed yet is read straight from JSON lines."""
        found = unparsed_texts(batch, name)
        if found is not None:
            return cls(found.texts, found.is_null, tokenizer)
        column = batch.column(name)
        texts = TextColumn.of(column)
        if texts is None:
            raise StageError(f"rules: expected a column of texts; got {column.type} in {name!r}")
        return cls(texts, is_null(column), tokenizer)

    def __len__(self) -> int:
        return len(self.missing)

    def text(self, row: int) -> str:
        """Return one text as Python has it."""
        return self.column.data[self.column.starts[row] : self.column.stops[row]].tobytes().decode()

    def select(self, rows: NDArray[np.bool_]) -> "Texts":
        """Return some of the texts."""
        return self if rows.all() else Texts(self.column.take(np.flatnonzero(rows)), self.missing[rows], self.tokenizer)

    def to_arrow(self) -> pa.Array:
        """Return the texts as an array of strings."""
        bounds = zip(self.column.starts.tolist(), self.column.stops.tolist(), strict=True)
        pieces = [self.column.data[start:stop] for start, stop in bounds]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.column.stops - self.column.starts)])
        return from_bytes_and_offsets(np.concatenate([np.zeros(0, np.uint8), *pieces]), offsets, ~self.missing)

    def remember(self, what: object, make: Callable[[], T]) -> T:
        """Return what was made for these texts under this name, or make it."""
        if what not in self._remembered:
            self._remembered[what] = make()
        return cast("T", self._remembered[what])

    def count(self, what: object, wanted: NDArray[np.bool_], make: Callable[[TextColumn], Counts]) -> Counts:
        """Return int64[columns, N]: what `make` counts in the texts that are wanted, 0 in the others.

        `make` returns int64[D, columns] or int64[D]. What is remembered are the counts of those wanted first.
        """

        def counted() -> Counts:
            rows = np.flatnonzero(wanted)
            return self.spread(rows, make(self.column if len(rows) == len(self) else self.column.take(rows)))

        return self.remember(what, counted)

    def spread(self, rows: Rows, counts: Counts) -> Counts:
        """Return int64[columns, N] with counts at some rows and 0 at the others."""
        table = counts if counts.ndim == 2 else counts[:, np.newaxis]
        whole = np.zeros((table.shape[1], len(self)), np.int64)
        whole[:, rows] = table.T
        return whole

    def tokens(self, wanted: NDArray[np.bool_]) -> tuple[Rows, Tokens]:
        """The English tokens of the texts that are wanted, and which those are: no more than when asked first."""

        def cut() -> tuple[Rows, Tokens]:
            rows = np.flatnonzero(wanted)
            return rows, self.tokenizer.cut(self.column if len(rows) == len(self) else self.column.take(rows))

        return self.remember("tokens", cut)

    def num_chars(self, wanted: NDArray[np.bool_]) -> Counts:
        """int64[N]: characters of the texts that are wanted."""
        chars: Counts = self.count("chars", wanted, count_characters)[0]
        return chars
