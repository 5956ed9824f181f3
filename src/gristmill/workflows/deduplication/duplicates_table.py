"""`duplicates.parquet`: each removed document, the one it lost to, how similar they are, where both come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.deduplication.document_numbers import OF_INDEX, SOURCE_SHIFT, source_of
from gristmill.storage.atomic_write import whole_file
from gristmill.tasks.text_columns import from_texts
from gristmill.workflows.deduplication.dedup_input import DedupInput

FILE_NAME = "duplicates.parquet"
CHUNK_ROWS = 100_000
INDEX_SOURCE = OF_INDEX >> int(SOURCE_SHIFT)


@dataclass
class Duplicates:
    """Removed documents, ordered by number. `ids` and `kept_ids` are None where numbers are the ids."""

    doc: NDArray[np.uint64]
    kept_doc: NDArray[np.uint64]
    similarity: NDArray[np.float64]
    bands_shared: NDArray[np.int32]
    ids: pa.Array | None = None
    kept_ids: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.doc)

    def to_table(self, source: DedupInput, index_files: Sequence[str] = ()) -> pa.Table:
        """Return the table for a person."""
        columns = {
            "id": self._labels(source, self.doc) if self.ids is None else self.ids,
            "kept_id": self._labels(source, self.kept_doc) if self.kept_ids is None else self.kept_ids,
            "similarity": from_numbers(self.similarity),
            "bands_shared": from_numbers(self.bands_shared),
            "source": _files(source, self.doc, index_files),
            "kept_source": _files(source, self.kept_doc, index_files),
        }
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    @staticmethod
    def _labels(source: DedupInput, numbers: NDArray[np.uint64]) -> pa.ChunkedArray:
        """Made some at a time: as Python strings all of them would take ten times their size."""
        parts = np.split(numbers, range(CHUNK_ROWS, len(numbers), CHUNK_ROWS))
        return pa.chunked_array([from_texts([source.numbers.label(n) for n in part.tolist()]) for part in parts])


def no_duplicates() -> Duplicates:
    """Return an empty list."""
    return Duplicates(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0), np.zeros(0, np.int32))


def _files(source: DedupInput, numbers: NDArray[np.uint64], index_files: Sequence[str]) -> pa.Array:
    """The files documents are in: each name once, and a number a document."""
    places, numbered = np.unique(source_of(numbers), return_inverse=True)
    index = index_files[0] if index_files else "index"
    names = [source.file_of(int(place)) if place < INDEX_SOURCE else index for place in places]
    return pa.DictionaryArray.from_arrays(from_numbers(numbered.astype(np.int32)), from_texts(names))


def write_duplicates(table: pa.Table, directory: str | Path) -> str:
    """Write `duplicates.parquet`, which appears whole or not at all; return its path."""
    import pyarrow.parquet as pq

    path = Path(directory) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, forced=True) as temporary:
        pq.write_table(table, temporary)
    return str(path)
