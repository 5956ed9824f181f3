"""What stages that judge by scores share: scores as numbers, and what an earlier run has found out about them."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.kernels.arrow_arrays import from_numbers, to_numbers
from gristmill.stages.base import ProcessingStage
from gristmill.stages.exchange.barrier import Rows
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import is_json, loads
from gristmill.tasks.table import TableBatch

Numbers = NDArray[np.float64]


def scores_of(batch: TableBatch, field_name: str, *, who: str) -> Numbers:
    """Return float64[N], the scores in a column; NaN where there is none, which is what a NaN in the data means too."""
    column, kind = batch.column(field_name), batch.field(field_name).type
    if column.null_count == len(column):
        return np.full(len(column), math.nan)
    if is_json(batch.field(field_name)):  # values of several kinds
        return np.array([_number(value, field_name, who) for value in map(_loaded, column.to_pylist())], np.float64)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        _number(next(value for value in column.to_pylist() if value is not None), field_name, who)
    return to_numbers(column.cast(pa.float64(), safe=False).fill_null(math.nan), np.float64)


def _loaded(text: str | None) -> object:
    return None if text is None else loads(text)


def _number(value: object, field_name: str, who: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StageError(f"{who}: expected numbers in column {field_name!r}; got {value!r:.80}, {type(value).__name__}")
    return float(value)


def nullable(values: NDArray[np.number], missing: NDArray[np.bool_]) -> pa.Array:
    """Return an Arrow array that is null where `missing` is true."""
    plain = from_numbers(values)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(plain.type, len(plain), [valid, plain.buffers()[1]]) if missing.any() else plain


def known_scores(rows: Rows, field_name: str, *, who: str) -> Iterator[Numbers]:
    """Yield the scores of all rows, without those that have none."""
    for batch in rows():
        scores = scores_of(batch, field_name, who=who)
        yield scores[~np.isnan(scores)]


@dataclass(eq=False)
class CheckScores(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Let documents pass whose scores are numbers or missing; any other one is quarantined, by failing here."""

    adds_only_declared_columns: ClassVar[bool] = True

    fields: list[str]
    name: str = field(default="check_scores", kw_only=True)

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.fields)

    def process(self, task: DocumentBatch) -> DocumentBatch:
        for name in self.fields:
            scores_of(task, name, who=self.stage_name())
        return task


# What an earlier run has found out about its dataset: see `Findings`


def load_entry(path: str, output_field: str, *, who: str, wanted: str) -> dict[str, object]:
    """Return the entry of a column, or the only one there is."""
    entries = _entries(Path(path), who=who)
    if output_field not in entries and len(entries) != 1:
        raise ConfigError(
            f"{who}: expected {path!r} to have {wanted} for column {output_field!r}; "
            f"got {list(entries)}{nearest(output_field, list(entries))}"
        )
    return entries.get(output_field) or next(iter(entries.values()))


def _entries(path: Path, *, who: str) -> dict[str, dict[str, object]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{who}: expected a file that an earlier run has written at {str(path)!r}; got {error}"
        ) from None
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise ConfigError(f"{who}: expected an entry for each column in {str(path)!r}; got {found!r:.200}")
    return cast("dict[str, dict[str, object]]", found)


def sorted_numbers(given: object, length: int | None, *, who: str, what: str) -> list[float]:
    """Return `given` if it is `length` (None: any number of) numbers in ascending order; else raise ConfigError."""
    numbers = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else None
    is_right = numbers is not None and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if numbers is None or not is_right or length not in (None, len(numbers)) or any(map(math.isnan, numbers)):
        raise ConfigError(f"{who}: expected {what} to be {length or 'some'} numbers; got {given!r:.200}")
    if any(one > following for one, following in pairwise(numbers)):
        raise ConfigError(f"{who}: expected {what} in ascending order; got {given!r:.200}")
    return [float(number) for number in numbers]
