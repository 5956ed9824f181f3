"""`Sieve`: a batch on its way through filters. Rows are dropped by number; nothing is copied before the end."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_bools, is_null
from gristmill.stages.context import StageContext
from gristmill.stages.text.statistics.measure import Pass, run_pass
from gristmill.stages.text.statistics.statistic import Statistic
from gristmill.stages.text.statistics.text_column import TextColumn
from gristmill.stages.text.statistics.texts_of_lines import unparsed_texts
from gristmill.tasks import DocumentBatch
from gristmill.tasks.row_filtering import filter_column

Rows = NDArray[np.int64]


class Sieve:
    """The rows that are left of a batch, and the columns that were added for them."""

    def __init__(self, batch: DocumentBatch, passes: Mapping[Statistic, Pass]) -> None:
        self.rows: Rows = np.arange(batch.num_items)
        self._batch = batch
        self._passes = passes
        self._added: dict[str, tuple[Rows, pa.Array]] = {}  # values and the rows they belong to
        self._nulls: dict[str, NDArray[np.bool_]] = {}
        self._texts: dict[str, TextColumn | None] = {}
        self._counts: dict[tuple[str, Statistic], NDArray[np.int64]] = {}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column for the rows that are left."""
        if name in self._added:
            return pa.chunked_array([_at(self._added[name], self.rows)])
        column = self._batch.column(name)
        return column if len(self.rows) == len(column) else filter_column(column, from_bools(self._mask(self.rows)))

    def is_null(self, name: str) -> NDArray[np.bool_]:
        """Return true for the rows that are left and have no value."""
        if name in self._added:
            return is_null(self.column(name))
        if name in self._nulls:
            return self._nulls[name][self.rows]
        return is_null(self._batch.column(name))[self.rows]

    def texts(self, name: str) -> TextColumn | None:
        """Return a column of the batch for kernels, all rows of it; None if it was added here or holds no texts."""
        if name in self._added:
            return None
        if name not in self._texts:
            self._texts[name] = self._unparsed_texts(name) or TextColumn.of(self._batch.column(name))
        return self._texts[name]

    def text_bytes(self, name: str) -> int:
        """Return about how many bytes of text there are, without parsing what is not parsed."""
        if name not in self._batch.parsed_columns() and self._batch.lines is not None:
            return self._batch.lines.nbytes
        texts = self.texts(name)
        return 0 if texts is None else texts.num_bytes

    def _unparsed_texts(self, name: str) -> TextColumn | None:
        found = unparsed_texts(self._batch, name)
        if found is None:
            return None
        self._nulls[name] = found.is_null
        return found.texts

    def counts(self, name: str, wanted: Iterable[Statistic]) -> dict[Statistic, NDArray[np.int64]]:
        """Return statistics of the rows that are left, counting what nobody has asked for yet."""
        texts = self.texts(name)
        if texts is None:
            raise ValueError(f"Sieve.counts: expected a column of texts; got {name!r}")
        for made in dict.fromkeys(self._passes[found] for found in wanted if (name, found) not in self._counts):
            everywhere = len(self.rows) == len(texts)
            for found, values in run_pass(made, texts if everywhere else texts.take(self.rows)).items():
                full = values if everywhere else np.zeros(len(texts), np.int64)
                if not everywhere:
                    full[self.rows] = values
                self._counts[name, found] = full
        return {found: self._counts[name, found][self.rows] for found in wanted}

    def add(self, columns: Iterable[tuple[str, pa.Array]]) -> None:
        """Add columns, with values for the rows that are left."""
        for name, values in columns:
            self._added[name] = (self.rows, values)
            self._texts.pop(name, None)
            self._nulls.pop(name, None)

    def report(
        self,
        context: StageContext,
        dropped: NDArray[np.bool_],
        *,
        reason: str,
        values: pa.Array | None = None,
        threshold: str | None = None,
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

    def keep(self, kept: NDArray[np.bool_]) -> None:
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

    def _mask(self, rows: Rows) -> NDArray[np.bool_]:
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
