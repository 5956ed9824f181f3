"""`TextColumn`: a column of texts as the bytes and ranges that kernels work on."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import is_null
from gristmill.kernels.text.layout import BLOCK

_OFFSETS = {pa.string(): np.int32, pa.large_string(): np.int64}
_NO_BYTES = np.zeros(1, np.uint8)
ROOM_BEFORE = BLOCK  # kernels load as many bytes that end where a text ends


@dataclass(frozen=True)
class TextColumn:
    """Document d is `data[starts[d]:stops[d]]`, UTF-8; a null is an empty document."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "TextColumn | None":
        """Return the texts of a column, sharing its memory where it has one chunk; None if it holds no texts."""
        if pa.types.is_null(column.type):
            nothing = np.zeros(len(column), np.int64)
            return cls(_NO_BYTES, nothing, nothing)
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if column.type not in _OFFSETS:
            return None
        if column.num_chunks != 1:
            column = pa.chunked_array([column.cast(pa.large_string()).combine_chunks()])
        return cls._of_array(column.chunk(0), is_null(column))

    @classmethod
    def _of_array(cls, array: pa.Array, null: NDArray[np.bool_]) -> "TextColumn":
        _, offsets, data = array.buffers()
        if not len(array) or offsets is None:
            return cls(_NO_BYTES, np.zeros(0, np.int64), np.zeros(0, np.int64))
        width = np.dtype(_OFFSETS[array.type])
        bounds = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize).astype(np.int64)
        # What an Arrow array has at the place of a null is not specified, and need not be nothing.
        stops = np.where(null, bounds[:-1], bounds[1:]) if null.any() else bounds[1:]
        given = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
        return cls._with_room_before(given, bounds[:-1].copy(), stops.copy())

    @classmethod
    def _with_room_before(
        cls, data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]
    ) -> "TextColumn":
        """Kernels load 64 bytes that end where a text ends: see to it that there are as many."""
        first = stops[stops > starts][:1]
        if not len(first) or first[0] >= ROOM_BEFORE:
            return cls(data, starts, stops)
        return cls(np.concatenate([np.zeros(ROOM_BEFORE, np.uint8), data]), starts + ROOM_BEFORE, stops + ROOM_BEFORE)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def num_bytes(self) -> int:
        """The bytes of all documents."""
        return int((self.stops - self.starts).sum())

    @property
    def longest(self) -> int:
        """The bytes of the longest document."""
        return int((self.stops - self.starts).max(initial=0))

    def take(self, rows: NDArray[np.int64]) -> "TextColumn":
        """Return some of the documents, sharing their memory."""
        return TextColumn(self.data, self.starts[rows], self.stops[rows])
