"""`HashParts`: the hash and place of each line or paragraph. `RemoveParts` takes some of them out of documents."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from gristmill.deduplication.documents import DocumentNumbers
from gristmill.deduplication.files_between import has_arrays, write_arrays
from gristmill.kernels.arrow_arrays import from_bools, from_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

Unit = Literal["line", "paragraph"]
SEPARATORS: dict[str, str] = {"line": "\n", "paragraph": "\n\n"}
LEFT_OUT = "too_little_left"


def parts_of(text: str, unit: Unit, min_chars: int) -> Iterator[tuple[int, str]]:
    """Yield position and content of the parts that are compared: all but blank and too short ones."""
    for position, part in enumerate(text.split(SEPARATORS[unit])):
        stripped = part.strip()
        if stripped and len(stripped) >= min_chars:
            yield position, stripped


@dataclass(eq=False)
class HashParts(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Turn documents into a row for each part: `low`, `high`, `doc`, `part`, `worth`, `tie`."""

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    unit: Unit
    text_field: str = "text"
    min_chars: int = 1
    name: str = field(default="hash_parts", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self.numbers.of_batch(task.task_id, task.num_items).tolist()
        docs, places, digests = [], [], []
        for number, text in zip(numbers, task.column(self.text_field).to_pylist(), strict=True):
            for place, part in parts_of(text or "", self.unit, self.min_chars):
                docs.append(number)
                places.append(place)
                digests.append(xxhash.xxh3_128_digest(part.encode()))
        hashes = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64).reshape(-1, 2)
        columns: dict[str, NDArray[np.number]] = {
            "low": np.ascontiguousarray(hashes[:, 0]),
            "high": np.ascontiguousarray(hashes[:, 1]),
            "doc": np.array(docs, np.uint64),
            "part": np.array(places, np.int32),
            "worth": np.zeros(len(docs)),
            "tie": np.zeros(len(docs), np.uint64),
        }
        arrays = [from_numbers(array) for array in columns.values()]
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(arrays, names=list(columns)))


def are_parts(directory: Path) -> bool:
    """Whether `write_parts` has written here and nothing has changed since. If not, whatever is here is removed."""
    return has_arrays(directory, ("doc", "part"))


def write_parts(directory: Path, doc: NDArray[np.uint64], part: NDArray[np.int32]) -> None:
    """Write what `RemoveParts` reads, ordered by document; it appears whole or not at all."""
    order = np.lexsort((part, doc))
    # A last entry that belongs to no document, so that the files are never empty and can be mapped.
    docs, parts = np.append(doc[order], np.uint64(2**64 - 1)), np.append(part[order], np.int32(0))
    write_arrays(directory, {"doc": docs, "part": parts})


@dataclass(eq=False)
class RemoveParts(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Take lines or paragraphs out of documents; drop a document with fewer than `min_left_chars` left.

    A document that loses nothing keeps its bytes.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    adds_only_declared_columns: ClassVar[bool] = True

    unit: Unit
    text_field: str = "text"
    min_left_chars: int = 1
    name: str = field(default="remove_parts", kw_only=True)

    _numbers: DocumentNumbers = field(default_factory=lambda: DocumentNumbers([]), init=False, repr=False)
    _removals: str = field(default="", init=False, repr=False)  # a directory of `write_parts`

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        self._doc: NDArray[np.uint64] = np.load(f"{self._removals}/doc.npy", mmap_mode="r")
        self._part: NDArray[np.int32] = np.load(f"{self._removals}/part.npy", mmap_mode="r")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        numbers = self._numbers.of_batch(task.task_id, task.num_items)
        if not task.num_items:
            return task
        first, end = np.searchsorted(self._doc, [numbers[0], numbers[-1] + np.uint64(1)])
        lost: dict[int, set[int]] = {}
        rows = (self._doc[first:end] - numbers[0]).astype(np.int64)
        for row, part in zip(rows.tolist(), self._part[first:end].tolist(), strict=True):
            lost.setdefault(row, set()).add(part)
        if not lost:
            return task
        texts = task.column(self.text_field).to_pylist()
        left_out = np.zeros(task.num_items, np.bool_)
        for row, gone in lost.items():
            texts[row] = self._without(texts[row], gone)
            left_out[row] = len(texts[row].strip()) < self.min_left_chars
        self.context.drop(task, from_bools(left_out), reason=LEFT_OUT)
        return task.with_column(self.text_field, from_texts(texts)).filter(from_bools(~left_out))

    def _without(self, text: str, gone: set[int]) -> str:
        separator = SEPARATORS[self.unit]
        return separator.join(part for place, part in enumerate(text.split(separator)) if place not in gone)
