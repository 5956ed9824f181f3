"""Running modifiers over columns, for `Modify`: only the texts that may change become Python strings."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_numbers, is_null
from gristmill.stages.text.modifiers.document_modifier import DocumentModifier
from gristmill.tasks.json_lines import replace_surrogates
from gristmill.tasks.text_columns import from_texts, is_text, replace_rows

Function = Callable[..., object]


def modify_column(modifier: Function | DocumentModifier, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the modified column; the very same object if nothing in it changed."""
    function: Function = modifier.modify_document if isinstance(modifier, DocumentModifier) else modifier
    if not is_text(column.type):
        return _column_of([None if value is None else function(value) for value in column.to_pylist()])
    candidates = modifier.find_candidates(column) if isinstance(modifier, DocumentModifier) else None
    there = ~is_null(column) if candidates is None else candidates & ~is_null(column)
    rows = np.flatnonzero(there)
    if not len(rows):
        return column
    chosen = column if len(rows) == len(column) else column.take(from_numbers(rows))
    before = cast("list[str]", chosen.to_pylist())
    after = [function(text) for text in before]
    if not all(isinstance(value, str) for value in after):
        # A modifier that returns something other than text is applied to every text, so that types do not mix.
        return _column_of([None if text is None else function(text) for text in column.to_pylist()])
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if new is not old and new != old]
    if not changed:
        return column
    texts = [cast("str", after[i]) for i in changed]
    try:
        return replace_rows(column, rows[changed], texts)
    except UnicodeEncodeError:
        return replace_rows(column, rows[changed], [replace_surrogates(text) for text in texts])


def modify_columns(modifier: Function | DocumentModifier, columns: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return what a modifier of several fields makes of them, called with them as keywords."""
    function: Function = modifier.modify_document if isinstance(modifier, DocumentModifier) else modifier
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return _column_of([function(**dict(zip(columns, row, strict=True))) for row in rows])


def _column_of(values: Sequence[object]) -> pa.ChunkedArray:
    if not all(value is None or isinstance(value, str) for value in values):
        return pa.chunked_array([pa.array(values)])
    texts = cast("Sequence[str | None]", values)
    try:
        return pa.chunked_array([from_texts(texts)])
    except UnicodeEncodeError:
        return pa.chunked_array([from_texts([None if text is None else replace_surrogates(text) for text in texts])])
