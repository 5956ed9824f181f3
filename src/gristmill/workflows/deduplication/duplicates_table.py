"""`duplicates.parquet`: each removed document, the one it lost to, how similar they are, where both come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.stages.deduplication.document_numbers import OF_INDEX, SOURCE_SHIFT
from gristmill.tasks.text_columns import from_texts
from gristmill.workflows.deduplication.dedup_input import DedupInput

FILE_NAME = "duplicates.parquet"


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
    def _labels(source: DedupInput, numbers: NDArray[np.uint64]) -> pa.Array:
        return from_texts([source.numbers.label(number) for number in numbers.tolist()])


def _files(source: DedupInput, numbers: NDArray[np.uint64], index_files: Sequence[str]) -> pa.Array:
    names: dict[int, str] = {}
    texts = []
    for number in numbers.tolist():
        place = number >> int(SOURCE_SHIFT)
        if number >= OF_INDEX:
            place, name = -1, index_files[0] if index_files else "index"
            names[place] = name
        elif place not in names:
            names[place] = source.file_of(place)
        texts.append(names[place])
    return from_texts(texts)


def write_duplicates(table: pa.Table, directory: str | Path) -> str:
    """Write `duplicates.parquet`, which appears whole or not at all; return its path."""
    import pyarrow.parquet as pq

    path = Path(directory) / FILE_NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, temporary)
    temporary.replace(path)
    return str(path)
