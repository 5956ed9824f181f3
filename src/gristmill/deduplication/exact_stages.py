"""Stages of exact deduplication: the hash of each document and, behind an exchange by hash, which loses to which."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.documents import NOTHING_TO_COMPARE, OF_INDEX, DocumentNumbers, id_column
from gristmill.deduplication.files_between import has_arrays, write_arrays
from gristmill.deduplication.fork_preparation import prepare_fork
from gristmill.deduplication.keep_policy import KeepPolicy, compared_columns, worth_of
from gristmill.kernels.arrow_arrays import from_bools, from_numbers, to_numbers
from gristmill.kernels.content_hash import LANES, SECRET, SHORT_BYTES, content_hash
from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.kernels.row_hash import hash_column
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn, text_pieces
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

# `hash_texts`: 128 bits of each text of a column, by a kernel where texts are long.

_hash_long_texts = CompiledKernel("text.xxh3", "hash_long_texts")


def hash_texts(texts: TextColumn) -> NDArray[np.uint64]:
    """Return uint64[D, 2], what `content_hash` returns, which makes a call per text and so gets only short ones."""
    hashes = np.empty((len(texts), 2), np.uint64)
    secret, sums = np.frombuffer(SECRET, np.uint8), np.empty(LANES, np.uint64)
    _hash_long_texts(texts.data, texts.starts, texts.stops, len(texts), secret, sums, hashes)
    short = np.flatnonzero(texts.stops - texts.starts <= SHORT_BYTES)
    hashes[short] = content_hash(texts.data, texts.starts[short], texts.stops[short])
    return hashes


# `hash_tokens`: texts that differ only in case, accents, punctuation or white space have the same hash.

_hash_tokens = CompiledKernel("dedup.tokens", "hash_tokens")


def hash_tokens(texts: TextColumn) -> NDArray[np.uint64]:
    """Return uint64[D, 2]: 128 bits of each text's sequence of folded words; zeros for a text without words."""
    hashes = np.empty((len(texts), 2), np.uint64)
    tokens = np.empty(texts.longest + 1, np.uint64)
    _hash_tokens(texts.data, texts.starts, texts.stops, len(texts), fold_table(), tokens, hashes)
    return hashes


# Hashes of an index, sorted on disk and looked up by position. They are mapped: a look-up reads a few pages.

ARRAYS = ("low", "high", "position")


def is_index(directory: Path) -> bool:
    """Whether `write_index` has written an index here that is unchanged. If not, whatever is there is removed."""
    return has_arrays(directory, ARRAYS)


def write_index(directory: Path, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> None:
    """Write N ≥ 1 hashes; they appear whole or not at all. Positions are those of the arrays given."""
    order = np.lexsort((high, low))
    write_arrays(directory, {"low": low[order], "high": high[order], "position": order.astype(np.int64)})


def find_in_index(directory: str, low: NDArray[np.uint64], high: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return int64[N], the position of each hash in the index, or -1."""
    known_low, known_high, position = (np.load(f"{directory}/{name}.npy", mmap_mode="r") for name in ARRAYS)
    found = np.full(len(low), -1, np.int64)
    place = np.searchsorted(known_low, low)
    candidates = np.flatnonzero((place < len(known_low)) & (known_low[np.minimum(place, len(known_low) - 1)] == low))
    for row in candidates.tolist():
        at = int(place[row])
        # Different texts of the same low half are next to each other.
        while at < len(known_low) and known_low[at] == low[row]:
            if known_high[at] == high[row]:
                found[row] = position[at]
                break
            at += 1
    return found


# `HashDocuments`: of each document its number, its hash, and what decides whether it stays.


@dataclass(eq=False)
class HashDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to `low`, `high` (the hash), `doc` (the number), `worth`, `tie` and, with `id_field`, `id`.

    With `normalize`, texts that differ only in case, accents, punctuation and white space hash alike. A document whose
    column is null or empty equals no other and is left out. With `for_index` every row has an `id`.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    text_field: str = "text"
    id_field: str | None = None
    keep: KeepPolicy = field(default_factory=KeepPolicy)
    normalize: bool = False
    for_index: bool = False
    name: str = field(default="hash_documents", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], compared_columns(self.text_field, self.id_field, self.keep)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["low", "high", "doc", "worth", "tie"]

    def before_fork(self) -> None:
        prepare_fork(folds=self.normalize)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        hashes, lengths = self._hash_all(task)
        low = np.ascontiguousarray(hashes[:, 0])
        ids = None if self.id_field is None else id_column(task, self.id_field)
        by_order = ids is None or self.keep.kind == "first"
        columns = {
            "low": from_numbers(low),
            "high": from_numbers(np.ascontiguousarray(hashes[:, 1])),
            "doc": from_numbers(self.numbers.of_batch(task.task_id, task.num_items)),
            "worth": from_numbers(worth_of(task, lengths, self.keep)),
            "tie": from_numbers(np.zeros_like(low) if by_order else hash_column(ids)),
        }
        if ids is not None:
            columns["id"] = ids.cast(pa.string())
        elif self.for_index:
            numbers = self.numbers.of_batch(task.task_id, task.num_items).tolist()
            columns["id"] = from_texts([self.numbers.label(number) for number in numbers])
        rows = DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        nothing = lengths == 0
        if self.normalize:
            nothing |= (hashes == 0).all(axis=1)
        self.context.drop(task, from_bools(nothing), reason=NOTHING_TO_COMPARE)
        rows.task_id = task.task_id
        return rows.filter(from_bools(~nothing))

    def _hash_all(self, task: DocumentBatch) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return uint64[N, 2] and int64[N], the hash and the bytes of each text; a null has none."""
        hashes, lengths = np.empty((task.num_items, 2), np.uint64), np.empty(task.num_items, np.int64)
        first = 0
        for texts in text_pieces(task, self.text_field):
            rows = slice(first, first + len(texts))
            hashes[rows], lengths[rows] = self._hash(texts), texts.stops - texts.starts
            first += len(texts)
        return hashes, lengths

    def _hash(self, texts: TextColumn) -> NDArray[np.uint64]:
        return hash_tokens(texts) if self.normalize else hash_texts(texts)


@dataclass(eq=False)
class FindDuplicates(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Of each group with equal `low` and `high` keep one; return the others as `doc` with `kept_doc`.

    A group of fewer than `min_count` stays whole. `id`, and `part` for pieces of documents, come along if present.
    With an index, a directory of `write_index`, documents that are already in it lose to it.
    """

    rows_are_independent: ClassVar[bool] = False
    makes_new_documents: ClassVar[bool] = True

    min_count: int = 2
    name: str = field(default="find_duplicates", kw_only=True)

    _index: str | None = field(default=None, init=False, repr=False)  # in the run directory, which may be moved

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["low", "high", "doc", "worth", "tie"]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], ["kept_doc"]

    def before_fork(self) -> None:
        prepare_fork(folds=False)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        table = task.to_pyarrow()
        low, high, doc = (to_numbers(table.column(name), np.uint64) for name in ("low", "high", "doc"))
        has_parts = "part" in table.column_names
        part = to_numbers(table.column("part"), np.int32) if has_parts else np.zeros(len(doc), np.int32)
        kept = self._winners(table, part)
        indexed = np.full(len(doc), -1, np.int64) if self._index is None else find_in_index(self._index, low, high)
        losers = np.flatnonzero((kept != np.arange(len(doc))) | (indexed >= 0))
        losers = losers[np.lexsort((part[losers], doc[losers]))]
        winners = kept[losers]
        of_index = indexed[losers].astype(np.uint64) | np.uint64(OF_INDEX)
        kept_doc = np.where(indexed[losers] >= 0, of_index, doc[winners])
        columns = {"doc": from_numbers(doc[losers]), "kept_doc": from_numbers(kept_doc)}
        for column in [name for name in ("id", "part") if name in table.column_names]:
            columns[column] = table.column(column).take(from_numbers(losers))
            columns[f"kept_{column}"] = table.column(column).take(from_numbers(winners))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))

    def _winners(self, table: pa.Table, part: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return int64[N], the row that each row loses to, or the row itself."""
        kept = np.arange(table.num_rows)
        rows = _not_alone(to_numbers(table.column("low"), np.uint64))
        low, high, doc, tie = (
            to_numbers(table.column(name), np.uint64)[rows] for name in ("low", "high", "doc", "tie")
        )
        worth = to_numbers(table.column("worth"), np.float64)[rows]
        order = np.lexsort((part[rows], doc, tie, -worth, high, low))
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)]))
        sizes = np.diff(np.append(starts, len(order))) if len(order) else np.zeros(0, np.int64)
        is_removed = np.repeat(sizes >= self.min_count, sizes)
        first = order[np.repeat(starts[: len(sizes)], sizes)]
        kept[rows[order[is_removed]]] = rows[first[is_removed]]
        return kept


def _not_alone(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the positions of values that occur more than once, rising: only these are sorted by all columns."""
    order = np.argsort(values)
    same = values[order[1:]] == values[order[:-1]]
    is_pair = np.concatenate([[False], same]) | np.concatenate([same, [False]])
    return np.sort(order[is_pair[: len(order)]])
