"""`DocumentNumbers`: a number for each document of an input, the same whenever the same files are cut the same way.

    62            40 39        26 25            0
    source partition    piece          row            so numbers rise in the order of the input

A piece is one of several batches a source partition was streamed as.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import StageError

PIECE_SHIFT, SOURCE_SHIFT = np.uint64(26), np.uint64(40)
_MAX_SOURCES, _MAX_PIECES, _MAX_ROWS = 1 << 23, 1 << 14, 1 << 26
OF_INDEX = 1 << 63  # set in the numbers of documents that are in an index and not in the input


@dataclass
class DocumentNumbers:
    """`names` are the source partitions of a plan, in order."""

    names: Sequence[str]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def of_batch(self, task_id: str, num_rows: int) -> NDArray[np.uint64]:
        """Return uint64[N], the numbers of a batch's documents as they were read."""
        name, piece = task_id, 0
        if name not in self._index:
            name, _, digits = task_id.rpartition(".")
            piece = int(digits) if digits.isdecimal() else _MAX_PIECES
        source = self._index.get(name, _MAX_SOURCES)
        if source >= _MAX_SOURCES or piece >= _MAX_PIECES or num_rows > _MAX_ROWS:
            raise StageError(
                f"DocumentNumbers: expected a batch of at most {_MAX_ROWS} documents of a known source; "
                f"got {num_rows} of {task_id!r}"
            )
        first = (source << int(SOURCE_SHIFT)) | (piece << int(PIECE_SHIFT))
        return np.arange(first, first + num_rows, dtype=np.uint64)

    def parse(self, label: str) -> int:
        """Return the number of a document from its label; raise KeyError if there is no such source."""
        task_id, _, row = label.rpartition(":")
        return int(self.of_batch(task_id, int(row) + 1)[-1])

    def label(self, number: int) -> str:
        """Return a document's number for a person: source partition, piece if there are several, row."""
        source, rest = number >> int(SOURCE_SHIFT), number & ((1 << int(SOURCE_SHIFT)) - 1)
        piece, row = rest >> int(PIECE_SHIFT), rest & (_MAX_ROWS - 1)
        return f"{self.names[source]}:{row}" if not piece else f"{self.names[source]}.{piece:04d}:{row}"

    def __getstate__(self) -> dict[str, object]:
        return {"names": self.names}  # the index is as large as the names, and quickly made again


def source_of(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return uint64[N], the position of each document's source partition."""
    return numbers >> SOURCE_SHIFT
