"""`tokenize`: the tokens of every text of a column, compiled; equal to `english.split_english`.

A text is looked at from left to right without ever going back, so time and memory grow with its length.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.affixes import Bytes, Classes, Keys, point_at, width_at
from gristmill.kernels.tokens.code_points import LETTER, PUNCTUATION_CATEGORY, SENTENCE_END, SPACE, SYMBOL
from gristmill.kernels.tokens.cutting import LETTERS, cut_text, token_end, token_start
from gristmill.kernels.tokens.english_tables import EnglishTables, english_tables
from gristmill.kernels.tokens.jit import jit
from gristmill.kernels.tokens.rejoining import rejoin

HAS_LETTER, IS_SYMBOL, IS_PUNCTUATION, ENDS_SENTENCE, IS_SPACE = 1, 2, 4, 8, 16

A = TypeVar("A", bound=NDArray[np.generic])


class Tokens(NamedTuple):
    """The tokens of all texts, end to end; text d has tokens offsets[d] to offsets[d + 1]."""

    offsets: NDArray[np.int64]  # [D + 1]
    hashes: NDArray[np.uint64]  # [T] of the token's bytes, see `english_tables`
    chars: NDArray[np.int32]  # [T] length in characters
    bytes: NDArray[np.int32]  # [T] length in bytes
    flags: NDArray[np.uint8]  # [T] HAS_LETTER, IS_SYMBOL, ...


def tokenize(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    wanted: NDArray[np.bool_] | None = None,
    *,
    with_space: bool = False,
) -> Tokens:
    """Cut texts into tokens; white space between them is a token only `with_space`, a text not `wanted` has none."""
    chosen = np.ones(len(offsets) - 1, np.bool_) if wanted is None else wanted
    return Tokens(*_tokenize(data, offsets, chosen, with_space, english_tables()))


@jit
def _tokenize(
    data: Bytes,
    offsets: NDArray[np.int64],
    wanted: NDArray[np.bool_],
    with_space: bool,
    tables: EnglishTables,
) -> tuple[NDArray[np.int64], Keys, NDArray[np.int32], NDArray[np.int32], Bytes]:
    total = 0
    capacity = max(1024, len(data) // 5)
    hashes = np.empty(capacity, np.uint64)
    chars = np.empty(capacity, np.int32)
    widths = np.empty(capacity, np.int32)
    flags = np.empty(capacity, np.uint8)
    token_offsets = np.zeros(len(offsets), np.int64)
    room, keys = np.empty((1024, 3), np.int32), np.empty(1024, np.uint64)
    for number in range(len(offsets) - 1):
        if not wanted[number]:
            token_offsets[number + 1] = total
            continue
        text = data[offsets[number] : offsets[number + 1]]
        count = cut_text(text, room, keys, tables)
        while count < 0:
            size = min(2 * len(room), len(text))
            room, keys = np.empty((size, 3), np.int32), np.empty(size, np.uint64)
            count = cut_text(text, room, keys, tables)
        spans, known, count = rejoin(text, room, keys, count, tables)
        if total + count > capacity:
            capacity = max(2 * capacity, total + count)
            hashes = _grown(hashes, total, capacity)
            chars = _grown(chars, total, capacity)
            widths = _grown(widths, total, capacity)
            flags = _grown(flags, total, capacity)
        for token in range(count):
            start, end = token_start(spans, token), token_end(spans, token)
            kind, length = HAS_LETTER, end - start
            if not spans[token, 2] & LETTERS:
                kind, length = _describe(text, start, end, tables.classes)
            if with_space or not kind & IS_SPACE:
                hashes[total] = known[token]
                chars[total] = length
                widths[total] = end - start
                flags[total] = kind
                total += 1
        token_offsets[number + 1] = total
    return token_offsets, hashes[:total], chars[:total], widths[:total], flags[:total]


@jit
def _grown(values: A, used: int, capacity: int) -> A:
    larger = np.empty(capacity, values.dtype)
    for index in range(used):
        larger[index] = values[index]
    return larger


@jit
def _describe(data: Bytes, start: int, end: int, classes: Classes) -> tuple[int, int]:
    """The flags of a token and its length in characters."""
    letter = False
    symbol = True
    punctuation = True
    length = 0
    at = start
    kinds = np.uint32(0)
    while at < end:
        kinds = classes[point_at(data, at)]
        letter |= kinds & LETTER != 0
        symbol &= kinds & SYMBOL != 0
        punctuation &= kinds & PUNCTUATION_CATEGORY != 0
        length += 1
        at += width_at(data, at)
    flags = HAS_LETTER * letter + IS_SYMBOL * symbol + IS_PUNCTUATION * punctuation
    flags += ENDS_SENTENCE * (length == 1 and kinds & SENTENCE_END != 0) + IS_SPACE * (kinds & SPACE != 0)
    return flags, length
