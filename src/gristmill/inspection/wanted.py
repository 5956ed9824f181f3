"""Which rows are wanted: those for which a condition is true and in which a text occurs.

A text is found in every value that is or holds text, also inside lists and records. Lines of JSON are searched as bytes
first, because parsing them all would take ten times as long: the text as UTF-8 and as the `\\u` escapes that JSON
writers use, and only the lines that hold one of these are parsed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gristmill.inspection.arrow_values import is_true, rows_of
from gristmill.inspection.columns import Values
from gristmill.inspection.expression import Expression


@dataclass(frozen=True)
class Wanted:
    """Rows for which `where` is true and which hold `text`; without both, all rows."""

    where: Expression | None = None
    text: str = ""

    @property
    def is_all(self) -> bool:
        return self.where is None and not self.text

    def forms(self) -> tuple[bytes, ...]:
        """How the text may be written in a line of JSON."""
        if not self.text:
            return ()
        forms = [json.dumps(self.text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (False, True)]
        forms += [form.replace("/", "\\/") for form in forms]  # PHP and others escape it
        return tuple(dict.fromkeys(form.encode("utf-8", "surrogatepass") for form in forms))

    def is_in(self, values: Values) -> bool:
        """Whether the text occurs in a row."""
        return not self.text or any(self.text in found for found in texts_of(values))

    def columns_of(self, schema: pa.Schema) -> list[str]:
        """The columns of a Parquet file that must be read to decide; with a field of a record, all of the record."""
        needed = [field.name for field in schema if self.text and _holds_text(field.type)]
        for name in self.where.kinds if self.where is not None else ():
            of_name = [known for known in schema.names if name == known or name.startswith(f"{known}.")]
            needed.append(max(of_name, key=len))
        return list(dict.fromkeys(needed))

    def mask(self, table: pa.Table) -> NDArray[np.bool_]:
        """True for the wanted rows of a table."""
        found = np.ones(len(table), np.bool_)
        if self.where is not None:
            found &= self.where.mask(table)
        if self.text:
            holds = np.zeros(len(table), np.bool_)
            for column in table.columns:
                holds |= _rows_with(column.combine_chunks(), self.text)
            found &= holds
        return found


def texts_of(value: object) -> Iterator[str]:
    """Every text in a value of JSON: itself, or those in its elements and fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _holds_text(kind.value_type)
    if _is_list(kind):
        return _holds_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_holds_text(field.type) for field in kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _rows_with(array: pa.Array, text: str) -> NDArray[np.bool_]:
    """Which values of an array hold a text, at any depth."""
    found = np.zeros(len(array), np.bool_)
    if isinstance(array, pa.ChunkedArray):  # what combine_chunks returns for types that cannot be joined
        parts = [_rows_with(chunk, text) for chunk in array.chunks]
        return np.concatenate([found[:0], *parts])
    if not _holds_text(array.type):
        return found
    if pa.types.is_dictionary(array.type):
        return _rows_with(array.dictionary_decode(), text)
    if pa.types.is_struct(array.type):
        for number in range(array.type.num_fields):
            found |= _rows_with(pc.struct_field(array, [number]), text)
        return found
    if _is_list(array.type):
        inner = _rows_with(pc.list_flatten(array), text)
        found[rows_of(pc.list_parent_indices(array))[inner]] = True
        return found
    return _texts_with(array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array, text)


def _texts_with(array: pa.Array, text: str) -> NDArray[np.bool_]:
    data = array.buffers()[2]
    # Most batches do not hold the text at all, and searching bytes takes a third of the time.
    if data is None or text.encode("utf-8", "surrogatepass") not in data.to_pybytes():
        return np.zeros(len(array), np.bool_)
    return is_true(pc.match_substring(array, text))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
