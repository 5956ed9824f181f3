"""Tokens on their way from a tokenizer to a model: one column of lists, without padding and without a mask.

Null means that there is nothing to ask a model about: the text is missing, empty or blank. The mask a model wants is
the length of the list, so it is made where batches are made and never travels.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import StageError
from gristmill.kernels.arrow_arrays import from_numbers, is_null
from gristmill.tasks.document import BETWEEN_STAGES
from gristmill.tasks.text_columns import to_bitmap

TOKENS = f"{BETWEEN_STAGES}tokens"  # between the two stages of a composite; no user's column is called that
TRUNCATED = f"{BETWEEN_STAGES}truncated"
INPUT_IDS, ATTENTION_MASK = "input_ids", "attention_mask"  # what users call kept tokens

_MOST = np.iinfo(np.int32).max


class TokenLists(NamedTuple):
    """Document d has ids[offsets[d]:offsets[d + 1]]; one that `is_missing` has none."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    is_missing: NDArray[np.bool_]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64[D]: tokens of each document."""
        return np.diff(self.offsets)


def to_column(tokens: TokenLists) -> pa.Array:
    """Return lists of int32, null where tokens are missing."""
    return _lists(from_numbers(tokens.ids), tokens)


def to_mask_column(tokens: TokenLists) -> pa.Array:
    """Return a list of ones for each document: what `attention_mask` is without padding."""
    return _lists(from_numbers(np.ones(len(tokens.ids), np.int32)), tokens)


def _lists(values: pa.Array, tokens: TokenLists) -> pa.Array:
    small = len(tokens.ids) <= _MOST
    kind = pa.list_(pa.int32()) if small else pa.large_list(pa.int32())
    offsets = pa.py_buffer(tokens.offsets.astype(np.int32 if small else np.int64))
    return pa.Array.from_buffers(
        kind, len(tokens.is_missing), [to_bitmap(~tokens.is_missing), offsets], children=[values]
    )


def from_column(column: pa.ChunkedArray, *, who: str, name: str = INPUT_IDS) -> TokenLists:
    """Return the tokens of a column of lists of whole numbers, of whatever width."""
    missing = is_null(column)
    if pa.types.is_null(column.type):
        return TokenLists(np.zeros(0, np.int32), np.zeros(len(column) + 1, np.int64), missing)
    lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if not lists or not pa.types.is_integer(column.type.value_type):
        raise StageError(f"{who}: expected {name!r} to hold lists of token ids; got {column.type}")
    lengths, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for chunk in column.chunks:
        kept = chunk if not chunk.null_count else chunk.drop_null()  # what lies under a null is not specified
        there = np.ones(len(chunk), np.bool_) if kept is chunk else ~is_null(pa.chunked_array([chunk]))
        each = np.zeros(len(chunk), np.int64)
        each[there] = _list_lengths(kept)
        flat = kept.flatten()
        if flat.null_count:
            raise StageError(f"{who}: expected {name!r} to hold lists of token ids; got a list with a null in it")
        lengths.append(each)
        values.append(_numbers(flat))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])
    return TokenLists(np.concatenate(values), offsets, missing)


def _list_lengths(array: pa.Array) -> NDArray[np.int64]:
    width = np.dtype(np.int32 if pa.types.is_list(array.type) else np.int64)
    if not len(array):
        return np.zeros(0, np.int64)
    offsets = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize)
    return np.diff(offsets).astype(np.int64)


def _numbers(flat: pa.Array) -> NDArray[np.int32]:
    if not len(flat):
        return np.zeros(0, np.int32)
    plain = flat if flat.type == pa.int32() else flat.cast(pa.int32())
    return np.frombuffer(plain.buffers()[1], np.int32, len(plain), plain.offset * 4)


def without_padding(ids: TokenLists, mask: TokenLists, *, who: str) -> TokenLists:
    """Return the ids where the mask is 1: for tokens made elsewhere, padded or not, on either side."""
    if not np.array_equal(ids.offsets, mask.offsets):
        raise StageError(f"{who}: expected {INPUT_IDS!r} and {ATTENTION_MASK!r} to have lists of the same lengths")
    kept = mask.ids != 0
    if kept.all():
        return ids._replace(is_missing=ids.is_missing | (ids.lengths == 0))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    offsets = before[ids.offsets]
    return TokenLists(ids.ids[kept], offsets, ids.is_missing | (np.diff(offsets) == 0))


def cut_to(tokens: TokenLists, most: int) -> TokenLists:
    """Return the first `most` tokens of each document: for tokens that were made for a longer model."""
    lengths = np.minimum(tokens.lengths, most)
    if (lengths == tokens.lengths).all():
        return tokens
    place = np.arange(len(tokens.ids)) - np.repeat(tokens.offsets[:-1], tokens.lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return TokenLists(tokens.ids[place < most], offsets, tokens.is_missing)
