"""From a text to a set of shingles to a sketch: a key for every band, equal where documents may be similar."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.deduplication.documents import NOTHING_TO_COMPARE, DocumentNumbers, id_column
from gristmill.deduplication.fork_preparation import prepare_fork
from gristmill.deduplication.keep_policy import KeepPolicy, compared_columns, worth_of
from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import Number, from_lists, from_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.kernels.dedup.fold_table import fold_table
from gristmill.kernels.dedup.permutations import draw_permutations
from gristmill.kernels.row_hash import hash_column
from gristmill.stages.base import ProcessingStage
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.judging.statistics import TextColumn, texts_of_batch
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts

# `Shingling`: how a text becomes a set to compare: "word:5" or "char:24".

_sketch = CompiledKernel("dedup.minhash", "sketch")
_shingle_sets = CompiledKernel("dedup.shingle_sets", "shingle_sets")


class Sketch(NamedTuple):
    """What is kept of D texts."""

    keys: NDArray[np.uint64]  # [bands, D]: texts that agree in a band have the same key there
    hashes: NDArray[np.uint64]  # [D, 2]: equal for texts equal up to case, accents and punctuation
    sizes: NDArray[np.int32]  # [D]: how many shingles, repeats included; 0 for a text with nothing to compare


@dataclass(frozen=True)
class Shingling:
    """Runs of `length` words or characters, after case, accents and punctuation are folded away."""

    by_word: bool = True
    length: int = 5

    @classmethod
    def parse(cls, text: str, *, who: str) -> "Shingling":
        """Return what "word:5" or "char:24" stands for."""
        unit, _, digits = text.partition(":")
        if unit not in ("word", "char") or not digits.isdecimal() or not 1 <= int(digits) <= 1000:
            raise ConfigError(f"{who}: expected shingle to read 'word:5' or 'char:24'; got {text!r}")
        return cls(unit == "word", int(digits))

    def __str__(self) -> str:
        return f"{'word' if self.by_word else 'char'}:{self.length}"

    def sketch(self, texts: TextColumn, banding: Banding, seed: int) -> Sketch:
        """Return what fuzzy deduplication keeps of D texts."""
        permutations = draw_permutations(banding.num_bands * banding.rows, seed=seed)
        made = Sketch(
            np.empty((banding.num_bands, len(texts)), np.uint64),
            np.empty((len(texts), 2), np.uint64),
            np.empty(len(texts), np.int32),
        )
        rooms = _room(texts, np.uint64), _room(texts, np.uint64), np.empty(permutations.shape[1], np.uint32)
        _sketch(*self._arguments(texts), permutations, *banding, *rooms, *made)
        return made

    def sets(self, texts: TextColumn) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the sets of D texts end to end, each sorted and without repeats, and int64[D + 1] where they begin."""
        values = np.empty(texts.num_bytes + len(texts), np.uint32)
        bounds = np.empty(len(texts) + 1, np.int64)
        rooms = [_room(texts, kind) for kind in (np.uint64, np.uint64, np.uint32, np.uint32)]
        _shingle_sets(*self._arguments(texts), *rooms, np.empty(257, np.int64), values, bounds)
        return values[: bounds[-1]].copy(), bounds

    def _arguments(self, texts: TextColumn) -> tuple[NDArray[np.generic] | int, ...]:
        """The first arguments of every kernel that makes shingles."""
        return texts.data, texts.starts, texts.stops, len(texts), fold_table(), int(self.by_word), self.length


def _room(texts: TextColumn, kind: type[Number]) -> NDArray[Number]:
    """Room for the tokens or shingles of the longest text."""
    return np.empty(texts.longest + 1, kind)


@dataclass(eq=False)
class SketchDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Reduce documents to `doc`, `low`, `high`, `worth`, `tie`, `size`, `band_0`… and, with `id_field`, `id`.

    `low` and `high` hash the folded words: documents that agree there are the same for any shingling. `size` is 0 for a
    document that has nothing to compare. With `for_index`, the shingle sets come too, and every document has an `id`:
    its number, if it has no other.
    """

    rows_are_independent: ClassVar[bool] = False  # a document's number is its position
    makes_new_documents: ClassVar[bool] = True

    numbers: DocumentNumbers
    shingling: Shingling
    banding: Banding
    text_field: str = "text"
    id_field: str | None = None
    keep: KeepPolicy = field(default_factory=KeepPolicy)
    seed: int = 42
    for_index: bool = False
    name: str = field(default="sketch_documents", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], compared_columns(self.text_field, self.id_field, self.keep)

    def before_fork(self) -> None:
        prepare_fork(folds=True)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = texts_of_batch(task, self.text_field)
        keys, hashes, sizes = self.shingling.sketch(texts, self.banding, self.seed)
        self.context.count(NOTHING_TO_COMPARE, int((hashes == 0).all(axis=1).sum()))  # not a word in it
        ids = None if self.id_field is None else id_column(task, self.id_field)
        columns = {
            "doc": from_numbers(self.numbers.of_batch(task.task_id, task.num_items)),
            "low": from_numbers(np.ascontiguousarray(hashes[:, 0])),
            "high": from_numbers(np.ascontiguousarray(hashes[:, 1])),
            "worth": from_numbers(worth_of(task, texts.stops - texts.starts, self.keep)),
            "tie": from_numbers(np.zeros(len(sizes), np.uint64) if ids is None else hash_column(ids)),
            "size": from_numbers(sizes),
            **{f"band_{band}": from_numbers(own) for band, own in enumerate(keys)},
        }
        if ids is not None:
            columns["id"] = ids.cast(pa.string())
        if self.for_index:
            numbers = self.numbers.of_batch(task.task_id, task.num_items).tolist()
            columns.setdefault("id", from_texts([self.numbers.label(number) for number in numbers]))
            columns["shingles"] = from_lists(*self.shingling.sets(texts))
        return DocumentBatch(task.dataset_name, pa.Table.from_arrays(list(columns.values()), names=list(columns)))
