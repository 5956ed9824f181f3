"""The documents a classifier learns from and is judged by, on disk between the reading and the training.

A document's part (training, calibration, report) is a function of its text, or of its group, and the seed: copies of a
text, and texts that differ only in case, accents, punctuation and spaces, are on the same side, whichever files and
classes they are in. The order in which documents are learnt from is such a function too. Texts stay on disk: memory is
35 bytes a document, whatever its length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null, to_numbers
from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.kernels.row_hash import hash_column, mix
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.quality.linear_classifier import TEXT, VECTOR, read_vectors
from gristmill.tasks import DocumentBatch

TRAIN, CALIBRATION, REPORT = 0, 1, 2
PARTS = ("train", "calibration", "report")
NO_TEXT = "no_text"
SIDE, HASH = "side", "hash"

_hash_tokens = CompiledKernel("dedup.tokens", "hash_tokens")


@dataclass(eq=False)
class TakeExamples(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to their text, a hash of it, and a number that decides on which side of the split they are."""

    makes_new_documents: ClassVar[bool] = True

    text_field: str
    group_by: str | None
    seed: int
    name: str = field(default="take_examples", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field, *([] if self.group_by is None else [self.group_by])]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [TEXT, SIDE, HASH]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = task.column(self.text_field)
        if pa.types.is_null(texts.type):
            texts = texts.cast(pa.large_string())
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
            raise StageError(f"{self.stage_name()}: expected texts in {self.text_field!r}; got {texts.type}")
        texts = texts.cast(pa.large_string())
        blank = is_null(texts)
        trimmed = pc.fill_null(pc.utf8_trim_whitespace(texts), "")
        blank |= to_numbers(pc.binary_length(trimmed).cast(pa.int64()), np.int64) == 0
        hashes = hash_column(texts)
        sides = _fold_hashes(texts)
        sides = np.where(sides == 0, hashes, sides)  # a text without words
        if self.group_by is not None:
            groups = task.column(self.group_by)
            sides = np.where(is_null(groups), sides, hash_column(groups))
        columns = {TEXT: texts, SIDE: from_numbers(seeded(sides, self.seed)), HASH: from_numbers(hashes)}
        rows = DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        self.context.drop(task, from_bools(blank), reason=NO_TEXT)
        rows.task_id = task.task_id
        return rows.filter(from_bools(~blank))


def seeded(hashes: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Return different hashes for every seed, which have nothing to do with each other."""
    return mix(mix(hashes) + np.uint64(seed % 2**64))


def _fold_hashes(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    """A hash of each text's words, with case, accents and punctuation folded away; 0 for a text without words."""
    texts = TextColumn.of(column)
    if texts is None or not len(texts):
        return np.zeros(len(column), np.uint64)
    hashes = np.empty((len(texts), 2), np.uint64)
    tokens = np.empty(texts.longest + 1, np.uint64)
    _hash_tokens(texts.data, texts.starts, texts.stops, len(texts), fold_table(), tokens, hashes)
    return np.ascontiguousarray(hashes[:, 0])


class Examples:
    """All documents of both classes; their texts stay on disk."""

    def __init__(self, negative: Sequence[str], positive: Sequence[str], *, holdout: float, seed: int) -> None:
        self._files = [*sorted(negative), *sorted(positive)]
        sides, hashes, flags = [], [], []
        for number, path in enumerate(self._files):
            for table in _tables(path, [SIDE, HASH]):
                sides.append(to_numbers(table.column(SIDE), np.uint64))
                hashes.append(to_numbers(table.column(HASH), np.uint64))
                flags.append(np.full(len(table), number >= len(negative)))
        self._hashes = np.concatenate([np.empty(0, np.uint64), *hashes])
        self.order = seeded(self._hashes, seed)
        self.positive = np.concatenate([np.empty(0, np.bool_), *flags])
        place = np.concatenate([np.empty(0, np.uint64), *sides]).astype(np.float64) / 2**64
        self.part = np.select([place < holdout / 2, place < holdout], [CALIBRATION, REPORT], TRAIN)

    def __len__(self) -> int:
        return len(self.order)

    def counts(self) -> dict[str, dict[str, int]]:
        """How many documents of each class are in each part."""
        return {
            name: {
                "positive": int((self.positive & (self.part == part)).sum()),
                "negative": int((~self.positive & (self.part == part)).sum()),
            }
            for part, name in enumerate(PARTS)
        }

    def fingerprint(self, *, positive: bool) -> str:
        """A hash of the texts of a class, whatever their order."""
        own = np.sort(self._hashes[self.positive == positive])
        return f"xxh3:{xxhash.xxh3_128_hexdigest(own.astype('<u8').tobytes())}"

    def in_both_classes(self) -> int:
        """How many texts are in both classes: nothing can be learnt from those."""
        return len(np.intersect1d(self._hashes[self.positive], self._hashes[~self.positive]))

    def texts(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], TextColumn]]:
        """Yield the wanted documents, some at a time: their numbers and their texts."""
        first = 0
        for path in self._files:
            for table in _tables(path, [TEXT]):
                rows = np.flatnonzero(wanted[first : first + len(table)])
                texts = TextColumn.of(table.column(TEXT))
                if texts is not None and len(rows):
                    yield rows + first, texts.take(rows)
                first += len(table)

    def vectors(self, wanted: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the wanted documents that have a vector, some at a time: their numbers and their vectors."""
        first = 0
        for path in self._files:
            for table in _tables(path, [VECTOR]):
                vectors, has = read_vectors(table.column(VECTOR))
                chosen = wanted[first : first + len(table)]
                if (chosen & has).any():
                    yield np.flatnonzero(chosen & has) + first, vectors[chosen[has]]
                first += len(table)


def _tables(path: str, columns: list[str]) -> Iterator[pa.Table]:
    """Yield the batches of an Arrow file, mapped and not read, one at a time."""
    with pa.memory_map(path) as source:
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield pa.Table.from_batches([file.get_batch(number)]).select(columns)
