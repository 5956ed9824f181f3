"""Documents by number: numbering those of an input, taking a few, leaving some out.

A number is a document's place in the input, the same whenever the same files are cut the same way. So the input can be
read again and again, and what was found in one pass is used in the next, without an id in the documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.files_between import write_array
from gristmill.errors import ConfigError, StageError, nearest
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.judging.statistics import unparsed_texts
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_bytes_and_offsets

# `DocumentNumbers`: a number for each document of an input, the same whenever the same files are cut the same way.
#
#     62            40 39        26 25            0
#     source partition    piece          row            so numbers rise in the order of the input
#
# A piece is one of several batches a source partition was streamed as.

PIECE_SHIFT, SOURCE_SHIFT = np.uint64(26), np.uint64(40)
_MAX_SOURCES, MAX_PIECES, _MAX_ROWS = 1 << 23, 1 << 14, 1 << 26
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
            piece = int(digits) if digits.isdecimal() else MAX_PIECES
        source = self._index.get(name, _MAX_SOURCES)
        if source >= _MAX_SOURCES or piece >= MAX_PIECES or num_rows > _MAX_ROWS:
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


# `NumberDocuments`: the numbers as a column, for stages that may return fewer documents than went in.

DOCUMENT_NUMBER = "_gristmill_document"


@dataclass(eq=False)
class NumberDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Add each document's number. It must stand right behind the reader: a number is a position in what was read.

    A batch of more documents than `rows_at_once` is passed on as several, for stages that take long over each document.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True

    numbers: DocumentNumbers
    rows_at_once: int | None = None
    name: str = field(default="number_documents", kw_only=True)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [DOCUMENT_NUMBER]

    def new_columns(self) -> list[str]:
        return [DOCUMENT_NUMBER]

    def process(self, task: DocumentBatch) -> DocumentBatch | list[DocumentBatch]:
        numbers = self.numbers.of_batch(task.task_id, task.num_items)
        numbered = task.with_column(DOCUMENT_NUMBER, from_numbers(numbers))
        size = self.rows_at_once
        if size is None or task.num_items <= size:
            return numbered
        return [numbered.slice(start, size) for start in range(0, task.num_items, size)]


# `id_column`: the ids of a batch's documents, straight from its JSON lines where they are strings.


def id_column(batch: DocumentBatch, name: str) -> pa.ChunkedArray:
    """Return what `batch.column` returns, without making a Python object of each id."""
    texts = unparsed_texts(batch, name)
    if texts is None or texts.is_null.all():
        return batch.column(name)
    offsets = np.append(texts.starts, texts.stops[-1:])  # texts of lines lie end to end
    return pa.chunked_array([from_bytes_and_offsets(texts.data, offsets, ~texts.is_null)])


NOTHING_TO_COMPARE = "nothing_to_compare"  # why a document cannot be a duplicate

# `TakeDocuments`: a few documents by number, to show them to a person.

NOT_WANTED = "not_wanted"


@dataclass(eq=False)
class TakeDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Return the wanted documents as rows of `doc` and `text`; nothing else in them is parsed."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    wanted: list[int]
    text_field: str = "text"
    name: str = field(default="take_documents", kw_only=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        own = self.numbers.of_batch(task.task_id, task.num_items)
        is_wanted = np.isin(own, np.array(self.wanted, np.uint64))
        self.context.drop(task, from_bools(~is_wanted), reason=NOT_WANTED)
        wanted = task.filter(from_bools(is_wanted))
        has_text = wanted.has_column(self.text_field)
        texts = (
            wanted.column(self.text_field).cast(pa.string()) if has_text else pa.nulls(wanted.num_items, pa.string())
        )
        columns = [from_numbers(own[is_wanted]), texts]
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(columns, names=["doc", "text"]))


# `RemoveDocuments`: leave out the documents whose numbers are in a file, in the stage that reads them again.

REASON = "duplicate"
_END = np.uint64(2**64 - 1)  # closes the file, so that it is never empty and can be mapped


def write_removals(path: Path, removed: NDArray[np.uint64]) -> None:
    """Write the file `RemoveDocuments` reads; it appears whole or not at all."""
    write_array(path, np.append(np.sort(removed), _END))


def lost_rows(removed: NDArray[np.uint64], numbers: NDArray[np.uint64]) -> tuple[NDArray[np.bool_], tuple[int, int]]:
    """Return which of a batch's documents, given by number, are removed, and where in the file they are."""
    lost = np.zeros(len(numbers), np.bool_)
    if not len(numbers):
        return lost, (0, 0)
    first, end = np.searchsorted(removed, [numbers[0], numbers[-1] + np.uint64(1)]).tolist()
    lost[(removed[first:end] - numbers[0]).astype(np.int64)] = True
    return lost, (first, end)


@dataclass(eq=False)
class RemoveDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop documents by number. `removals` is a file of `write_removals`, mapped by every worker."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True

    numbers: DocumentNumbers
    removals: str
    name: str = field(default="remove_duplicates", kw_only=True)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._removed: NDArray[np.uint64] = np.load(self.removals, mmap_mode="r")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        lost, _ = lost_rows(self._removed, self.numbers.of_batch(task.task_id, task.num_items))
        mask = from_bools(lost)
        self.context.drop(task, mask, reason=REASON)
        return task.filter(from_bools(~lost))


@dataclass(eq=False)
class RemoveById(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Drop documents by the value of a column. Ids are compared as Arrow prints them: 7 is "7".

    `ids_path` is a Parquet file or a directory of them; each worker holds its column `ids_field` in memory. With
    `drop_id_field` the documents that stay lose the column.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    ids_path: str
    id_field: str
    ids_field: str = "id"
    drop_id_field: bool = False
    name: str = field(default="remove_duplicates", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.id_field]

    def check_ready(self) -> None:
        check_ids(self.ids_path, self.ids_field)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._ids = read_ids(self.ids_path, self.ids_field)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        import pyarrow.compute as pc

        lost = pc.is_in(task.column(self.id_field).cast(pa.string()), value_set=self._ids, skip_nulls=True)
        self.context.drop(task, lost, reason=REASON)
        kept = task.filter(pc.invert(lost))
        if not self.drop_id_field:
            return kept
        return kept.select([column for column in kept.get_columns() if column != self.id_field])


def check_ids(path: str, column: str) -> None:
    """Raise ConfigError if there is no such column, without reading it."""
    import pyarrow.parquet as pq

    try:
        known = pq.ParquetDataset(path).schema.names
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path}: expected Parquet with a column {column!r} of ids; got {error}") from error
    if column not in known:
        raise ConfigError(f"{path}: expected a column {column!r} of ids; got {known}{nearest(column, known)}")


def read_ids(path: str, column: str) -> pa.Array:
    """Return the ids of one Parquet file, or of all in a directory, as strings."""
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[column])
    except (OSError, pa.ArrowInvalid) as error:
        raise ConfigError(f"{path}: expected Parquet with a column {column!r} of ids; got {error}") from error
    if not table.num_columns:
        raise ConfigError(f"{path}: expected a column {column!r} of ids; there is none")
    joined = table.column(0).cast(pa.string()).combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
