"""`Texts`: a column of texts as bytes and offsets, with what several rules measure on it computed once.

Nothing here knows a rule. Kernels are imported when something is first measured, for they bring numba with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import is_null
from gristmill.tasks.text_columns import bytes_and_offsets

if TYPE_CHECKING:
    from gristmill.kernels.tokens.pieces import LineShapes
    from gristmill.kernels.tokens.tokenize import Tokens

T = TypeVar("T")


@dataclass(frozen=True)
class Texts:
    """Text i is data[offsets[i]:offsets[i + 1]]; a missing one is empty there and true in `missing`."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # [N + 1]
    missing: NDArray[np.bool_]  # [N]
    _remembered: dict[object, object] = field(default_factory=dict)

    @classmethod
    def from_column(cls, column: pa.ChunkedArray) -> "Texts":
        """Take a column of Arrow's text types; one chunk is not copied."""
        return cls(*bytes_and_offsets(column), is_null(column))

    def __len__(self) -> int:
        return len(self.missing)

    def with_missing(self, missing: NDArray[np.bool_]) -> "Texts":
        """Return the same texts, of which others count as missing."""
        return Texts(self.data, self.offsets, missing)

    def text(self, row: int) -> str:
        """Return one text as Python has it."""
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes().decode()

    def select(self, rows: NDArray[np.bool_]) -> "Texts":
        """Return some of the texts, end to end."""
        if rows.all():
            return self
        chosen = np.flatnonzero(rows)
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        pieces = [self.data[self.offsets[row] : self.offsets[row + 1]] for row in chosen.tolist()]
        data = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
        return Texts(data, offsets, self.missing[chosen])

    def remember(self, what: object, make: Callable[[], T]) -> T:
        """Return what was made for these texts under this name, or make it."""
        if what not in self._remembered:
            self._remembered[what] = make()
        return cast("T", self._remembered[what])

    def tokens(self, wanted: NDArray[np.bool_]) -> "Tokens":
        """The English tokens of the texts that are wanted: no more of them than when this was asked first."""
        from gristmill.kernels.tokens.tokenize import tokenize

        return self.remember("tokens", lambda: tokenize(self.data, self.offsets, wanted))

    @cached_property
    def line_shapes(self) -> "LineShapes":
        """Characters, and lines of certain shapes."""
        from gristmill.kernels.tokens.pieces import line_shapes

        return line_shapes(self.data, self.offsets)
