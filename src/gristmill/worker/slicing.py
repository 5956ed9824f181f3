"""`Slicer`: documents and bytes by the values of a column, and what became of them."""

from typing import TYPE_CHECKING, Any

from gristmill.metrics.observations import MAX_SLICES, Amount, Outcomes, Slices, slice_order
from gristmill.tasks import Batch

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

USUAL_SLICES = ("source", "language")
MAX_VALUE_CHARS = 200  # of what a slice is called

_Rows = Any  # numbers of rows, in a list or an array


class Slicer:
    """Counts the documents of one call. `columns` are those a user asked for; None for the usual, if they are there."""

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self._columns = columns
        self._found: dict[str, Slices] = {}
        self._batches: dict[int, tuple[Batch[Any], list[_Column]]] = {}  # with the batch, so that its id stays its own

    def slices_of(self, batch: Batch[Any]) -> bool:
        """Whether documents of a batch are counted at all."""
        return bool(self._columns_of(batch))

    def drop(self, batch: Batch[Any], rows: _Rows, stage: str, reason: str) -> None:
        """Count documents that were dropped."""
        for column in self._columns_of(batch):
            for outcomes, amount in column.amounts(rows, self._found):
                outcomes.drop(stage, reason, amount)

    def write(self, batch: Batch[Any], rows: _Rows | None) -> None:
        """Count documents that left the pipeline at its end; all of them if no rows are given."""
        for column in self._columns_of(batch):
            for outcomes, amount in column.amounts(rows, self._found):
                outcomes.written.add(amount)

    def slices(self) -> dict[str, Slices]:
        """Return what was counted, by column."""
        for slices in self._found.values():
            slices.bound()
        return self._found

    def _columns_of(self, batch: Batch[Any]) -> "list[_Column]":
        if id(batch) not in self._batches:
            self._batches[id(batch)] = (batch, [_Column(batch, name) for name in self._names(batch)])
        return self._batches[id(batch)][1]

    def _names(self, batch: Batch[Any]) -> list[str]:
        from gristmill.tasks import DocumentBatch, TableBatch  # which need Arrow; a worker without tables does not

        if not isinstance(batch, TableBatch) or not batch.num_items:
            return []
        if self._columns is not None:
            return [name for name in self._columns if batch.has_column(name)]
        # Looking for a field in every JSON line would take longer than many a filter.
        there = batch.parsed_columns() if isinstance(batch, DocumentBatch) else batch.get_columns()
        return [name for name in USUAL_SLICES if name in there]


class _Column:
    """A column of a batch: its distinct values, and which of them each row has."""

    def __init__(self, batch: Any, name: str) -> None:
        import numpy as np

        self.name = name
        encoded = batch.column(name).combine_chunks().dictionary_encode()
        chunks = encoded.chunks if hasattr(encoded, "chunks") else [encoded]
        known: dict[str | None, int] = {None: 0}
        codes = [_codes(chunk, known) for chunk in chunks]
        self._values = list(known)
        self._codes = np.concatenate([np.zeros(0, np.int64), *codes])
        sizes = batch.item_bytes() if hasattr(batch, "item_bytes") else None
        self._sizes = np.full(batch.num_items, batch.nbytes // batch.num_items) if sizes is None else sizes

    def amounts(self, rows: _Rows | None, found: dict[str, Slices]) -> list[tuple[Outcomes, Amount]]:
        """How many of these rows have each value, and where that is to be entered."""
        import numpy as np

        codes, sizes = (self._codes, self._sizes) if rows is None else (self._codes[rows], self._sizes[rows])
        documents = np.bincount(codes, minlength=len(self._values))
        num_bytes = np.zeros(len(self._values), np.int64)
        np.add.at(num_bytes, codes, sizes)
        slices = found.setdefault(self.name, Slices())
        there: list[int] = np.flatnonzero(documents).tolist()
        if len(there) <= 2 * MAX_SLICES:
            return [(slices.of(self._values[n]), Amount(int(documents[n]), int(num_bytes[n]))) for n in there]
        ordered = sorted(there, key=self._order)
        kept, others = ordered[: MAX_SLICES + 1], ordered[MAX_SLICES + 1 :]  # one more: a missing value is not one
        rest = Amount(int(documents[others].sum()), int(num_bytes[others].sum()))
        few = [(slices.of(self._values[n]), Amount(int(documents[n]), int(num_bytes[n]))) for n in kept]
        return [*few, (slices.others, rest)]

    def _order(self, number: int) -> tuple[int, str]:
        value = self._values[number]
        return (-1, "") if value is None else slice_order(value)


def _codes(chunk: "pa.DictionaryArray", known: dict[str | None, int]) -> "NDArray[np.int64]":
    import numpy as np
    import pyarrow as pa

    from gristmill.kernels.arrow_arrays import is_null, numbers_of

    values = [None if value is None else str(value)[:MAX_VALUE_CHARS] for value in chunk.dictionary.to_pylist()]
    numbers = np.array([known.setdefault(value, len(known)) for value in values] or [0], np.int64)
    indices = chunk.indices
    missing = is_null(pa.chunked_array([indices]))
    plain = pa.Array.from_buffers(indices.type, len(indices), [None, indices.buffers()[1]], offset=indices.offset)
    own = numbers_of(plain).astype(np.int64)
    own[missing] = 0
    codes = numbers[own]
    codes[missing] = known[None]
    return codes
