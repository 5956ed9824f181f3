"""`Sieve`: a batch on its way through steps that judge texts.

Rows are dropped by number; nothing is copied before the end. What is measured on a column of texts is kept with it, for
whichever step asks next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_bools, is_null
from gristmill.stages.context import StageContext
from gristmill.stages.text.judging.rule import RuleSet
from gristmill.stages.text.judging.statistics import Pass, Statistic
from gristmill.stages.text.judging.texts import Texts
from gristmill.stages.text.judging.tokens import EnglishTokenizer
from gristmill.stages.text.text_column import TextColumn, unparsed_texts
from gristmill.tasks import DocumentBatch
from gristmill.tasks.row_filtering import filter_column

SMALL_BYTES = 1 << 16  # text a worker scores one document at a time: 0.1 s, as long as loading compiled code takes

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Instruments:
    """What measuring needs from batch to batch: which pass counts what, what a tokenizer has learnt, how much text
    may still come before compiled code is loaded.
    """

    planned: Mapping[Statistic, Pass]
    small_bytes: int = SMALL_BYTES
    tokenizer: EnglishTokenizer = field(default_factory=EnglishTokenizer)


class Sieve:
    """The rows that are left of a batch, the columns that were added for them, and what was measured on its texts."""

    def __init__(self, batch: DocumentBatch, instruments: Instruments) -> None:
        self.rows: Rows = np.arange(batch.num_items)
        self._batch = batch
        self._instruments = instruments
        self._added: dict[str, tuple[Rows, pa.Array]] = {}  # values and the rows they belong to
        self._texts: dict[str, Texts | None] = {}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column for the rows that are left."""
        if name in self._added:
            return pa.chunked_array([_at(self._added[name], self.rows)])
        column = self._batch.column(name)
        return column if len(self.rows) == len(column) else filter_column(column, from_bools(self.wanted()))

    def is_null(self, name: str) -> Mask:
        """Return true for the rows that are left and have no value."""
        texts = self._texts.get(name)
        if texts is not None:
            return texts.column.is_null[self.rows]
        return is_null(self.column(name)) if name in self._added else is_null(self._batch.column(name))[self.rows]

    def texts(self, name: str) -> Texts | None:
        """Return a column of the batch for kernels, all rows of it; None if it holds no texts."""
        if name not in self._texts:
            column, tools = self._text_column(name), self._instruments
            self._texts[name] = None if column is None else Texts(column, tools.tokenizer, tools.planned)
        return self._texts[name]

    def texts_for_rules(self, name: str) -> Texts:
        """Return the texts of a column, or say that it holds none."""
        texts = self.texts(name)
        if texts is None:
            raise StageError(f"rules: expected a column of texts; got {self.column(name).type} in {name!r}")
        return texts

    def _text_column(self, name: str) -> TextColumn | None:
        if name in self._added:
            rows, values = self._added[name]
            added = TextColumn.of(pa.chunked_array([values]))
            if added is None or len(rows) == self._batch.num_items:
                return added
            starts, stops = (np.zeros(self._batch.num_items, np.int64) for _ in range(2))
            nulls = np.ones(self._batch.num_items, np.bool_)
            starts[rows], stops[rows], nulls[rows] = added.starts, added.stops, added.is_null
            return TextColumn(added.data, starts, stops, nulls)
        unparsed = unparsed_texts(self._batch, name)
        return TextColumn.of(self._batch.column(name)) if unparsed is None else unparsed

    def is_worth_counting(self, name: str) -> bool:
        """Whether compiled code pays: it is loaded already, or there has been more than a little text."""
        if self._instruments.small_bytes > 0:
            self._instruments.small_bytes -= self._text_bytes(name)
        return self._instruments.small_bytes <= 0

    def _text_bytes(self, name: str) -> int:
        """Return about how many bytes of text there are, without parsing what is not parsed."""
        if name not in self._batch.parsed_columns() and self._batch.lines is not None:
            return self._batch.lines.nbytes
        texts = self.texts(name)
        return 0 if texts is None else texts.column.num_bytes

    def wanted(self) -> Mask:
        """Return true for the rows of the batch that are left."""
        return self._mask(self.rows)

    def add(self, columns: Iterable[tuple[str, pa.Array]]) -> None:
        """Add columns, with values for the rows that are left."""
        for name, values in columns:
            self._added[name] = (self.rows, values)
            self._texts.pop(name, None)

    def rewrite(self, rules: RuleSet, name: str) -> None:
        """Replace the texts of a column by what a rule set makes of them."""
        texts = self.texts_for_rules(name)
        left = rules.rewrite(texts, self.wanted())
        if left is not texts:
            self._added[name] = (self.rows, left.to_arrow(self.rows))
            self._texts[name] = left

    def report(
        self, context: StageContext, dropped: Mask, *, reason: str, values: pa.Array | None, threshold: str | None
    ) -> None:
        """Record why some of the rows that are left, and are about to be dropped, leave the stream."""
        rows = self.rows[dropped]
        if not len(rows):
            return
        if not context.keep_rejects:
            context.drop(self._batch, from_bools(self._mask(rows)), reason=reason)
            return
        measured = None if values is None else values.filter(from_bools(dropped))
        everyone = from_bools(np.ones(len(rows), np.bool_))
        context.drop(self._take(rows), everyone, reason=reason, values=measured, threshold=threshold)

    def keep(self, kept: Mask) -> None:
        """Drop the rows that are left and not kept."""
        self.rows = self.rows[kept]

    def result(self) -> DocumentBatch:
        """Return a batch of the rows that are left."""
        return self._take(self.rows)

    def _take(self, rows: Rows) -> DocumentBatch:
        batch = self._batch.filter(from_bools(self._mask(rows)))
        for name, added in self._added.items():
            batch = batch.with_column(name, _at(added, rows))
        return batch

    def _mask(self, rows: Rows) -> Mask:
        mask = np.zeros(self._batch.num_items, np.bool_)
        mask[rows] = True
        return mask


def _at(added: tuple[Rows, pa.Array], rows: Rows) -> pa.Array:
    """The values at some of the rows they were made for."""
    own, values = added
    if len(own) == len(rows):
        return values
    mask = np.zeros(len(own), np.bool_)
    mask[np.searchsorted(own, rows)] = True
    return values.filter(from_bools(mask))
