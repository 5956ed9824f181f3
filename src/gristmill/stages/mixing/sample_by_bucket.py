"""`SampleByBucket`: how often a document is in the output depends on its level.

Weight w means floor(w) copies, and one more for a document whose hash is below w's fraction. The hash is made of the
seed and the document's id and nothing else, so the choice is the same in every run, on any number of workers, and
when the same documents are in other files. With a higher weight a document is never in the output less often.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError
from gristmill.kernels.arrow_arrays import from_bools, from_numbers, is_null
from gristmill.kernels.row_hash import hash_rows
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import StageContext
from gristmill.stages.io.line_blocks import line_bounds
from gristmill.tasks import DocumentBatch, TableBatch
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines
from gristmill.tasks.text_columns import from_texts

B = TypeVar("B", bound=TableBatch)
D = TypeVar("D", bound=DocumentBatch)


@dataclass(eq=False)
class SampleByBucket(ProcessingStage[TableBatch, TableBatch]):
    """Repeat or leave out documents by the weight of their level: `{"high": 2.5, "low": 0.5}`.

    The first copy of a document is the document as it was; copy k has `#k` behind its id. A level without a weight, and
    a document without a level, have the weight `default`, which is 1: nothing is left out unless asked for. What is
    left out is dropped with a reason, as by a filter. `field` may be any column of names or whole numbers.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    weights: Mapping[str, float]
    field: str = "quality_level"
    seed: int = 42
    _: KW_ONLY
    id_field: str = "id"
    default: float = 1.0
    name: str = "sample_by_bucket"

    def __post_init__(self) -> None:
        for level, weight in {**self.weights, "default": self.default}.items():
            check_weight(weight, f"{self.name}: expected the weight of {level!r}")

    def inputs(self) -> tuple[list[str], list[str]]:
        weights = [*self.weights.values(), self.default]
        return ["data"], [self.field, *([self.id_field] if any(map(needs_id, weights)) else [])]

    def named_values(self) -> Mapping[str, Sequence[str]]:
        return {self.field: [str(level) for level in self.weights]}

    def process(self, task: TableBatch) -> TableBatch:
        levels = names_in(task.column(self.field))
        weights = {str(level): float(weight) for level, weight in self.weights.items()}
        each = np.array(
            [self.default if level is None else weights.get(level, self.default) for level in levels], np.float64
        )
        labels = [level if level in weights else "other" for level in levels]
        return Copies(self.stage_name(), self.id_field, self.seed).make(task, each, labels, self.context)


def check_weight(weight: object, expected: str) -> float:
    """Return a weight if it is a number from 0 on; else raise ConfigError that begins with what was expected."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
        raise ConfigError(f"{expected} to be a number from 0 on; got {weight!r}")
    return float(weight)


def needs_id(weight: float) -> bool:
    """Whether following this weight needs ids: to choose documents, or to name copies."""
    return weight not in (0, 1)


def names_in(column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column as names; whole numbers, such as buckets, are names too."""
    return [None if value is None else str(value) for value in column.to_pylist()]


@dataclass(frozen=True)
class Copies:
    """Makes as many copies of documents as their weights say."""

    who: str
    id_field: str
    seed: int

    def make(self, task: B, weights: NDArray[np.float64], labels: Sequence[str | None], context: StageContext) -> B:
        """Return the copies, in the order of the documents. What is left out is dropped as `label_sampled_out`."""
        whole = np.floor(weights)
        is_needed = (weights != 0) & (weights != 1)
        shares = np.ones(len(weights))
        if is_needed.any():
            ids = self._ids(task, is_needed)
            # 53 bits: as many as a double holds, so that the comparison is the same everywhere.
            shares = (hash_rows([ids], seed=self.seed) >> np.uint64(11)).astype(np.float64) / 2.0**53
        times = whole.astype(np.int64) + (shares < weights - whole)
        self._drop(task, times == 0, weights, labels, context)
        if (times == 1).all():
            return task
        copied = task.take(from_numbers(np.repeat(np.arange(len(times)), times)))
        numbers = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        return self._numbered(copied, numbers) if numbers.any() else copied

    def _ids(self, task: TableBatch, is_needed: NDArray[np.bool_]) -> pa.ChunkedArray:
        ids = task.column(self.id_field)
        if (is_null(ids) & is_needed).any():
            raise StageError(
                f"{self.who}: expected an id in column {self.id_field!r}; got null. AddId gives every document one"
            )
        return ids

    def _drop(
        self,
        task: TableBatch,
        is_out: NDArray[np.bool_],
        weights: NDArray[np.float64],
        labels: Sequence[str | None],
        context: StageContext,
    ) -> None:
        for label in dict.fromkeys(labels[row] for row in np.flatnonzero(is_out).tolist()):
            own = is_out & np.fromiter((other == label for other in labels), np.bool_, len(labels))
            reason = f"{'other' if label is None else label}_sampled_out"
            context.drop(task, from_bools(own), reason=reason, values=from_numbers(weights), threshold="weight")

    def _numbered(self, copied: B, numbers: NDArray[np.int64]) -> B:
        """Give copies ids of their own: `a`, `a#1`, `a#2`."""
        ids = copied.column(self.id_field)
        if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)):
            raise StageError(
                f"{self.who}: expected ids that are text in column {self.id_field!r}, since a copy's is like 'a#1'; "
                f"got {ids.type}. AddId gives every document such an id"
            )
        texts = [f"{own}#{number}" if number else own for own, number in zip(ids.to_pylist(), numbers, strict=True)]
        named = from_texts(texts).cast(ids.type)
        if isinstance(copied, DocumentBatch) and copied.lines is not None and copied.lines.is_live(self.id_field):
            return _with_lines(copied, self.id_field, named, numbers > 0)
        return copied.with_column(self.id_field, named)


def _with_lines(batch: D, name: str, values: pa.Array, changed: NDArray[np.bool_]) -> D:
    """Return the batch with new values in a field of its JSON lines; lines of rows without a change stay as they are.

    `with_column` would rewrite the lines of all rows: the same values, but in other bytes than those of a batch
    without copies.
    """
    state, table = batch.to_parts()
    lines = table.column(0).combine_chunks()
    rows = from_numbers(np.flatnonzero(changed))
    fresh = DocumentBatch.from_lines(batch.dataset_name, JsonLines(lines.take(rows)))
    block = b"".join(encode_lines(fresh.with_column(name, values.take(rows))))
    buffers = [None, pa.py_buffer(line_bounds(block)), pa.py_buffer(block)]
    rewritten = pa.Array.from_buffers(pa.large_binary(), len(rows), buffers)
    places = np.where(changed, len(lines) + np.cumsum(changed) - 1, np.arange(len(lines)))
    table = table.set_column(0, table.schema.field(0), pa.concat_arrays([lines, rewritten]).take(from_numbers(places)))
    place = table.column_names.index(name, 1)
    return batch.from_parts(state, table.set_column(place, table.schema.field(place), values))
