"""Compiled access to the lexicon: the number of a token, and what a piece was cut into."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.affixes import find_value, hash_keys, keys_of
from gristmill.kernels.tokens.characters import class_at, width_at
from gristmill.kernels.tokens.code_points import LETTER, PUNCTUATION_CATEGORY, SENTENCE_END, SPACE, SYMBOL
from gristmill.kernels.tokens.english_tables import TOKENS_TABLE, EnglishTables

Words = NDArray[np.uint64]

FULL = -1  # there is no room for another token

_MIX = np.uint64(0xFF51AFD7ED558CCD)  # as in `token_hash.extend_pattern`


@inline
def number(lexicon: Words, place: int) -> int:
    """A number of the head."""
    return np.int64(lexicon[place])


@inline
def first_slot(lexicon: Words, table: int, key: np.uint64) -> int:
    """Where to look for a key first; slots are counted in words of the lexicon."""
    return number(lexicon, table) + lay.SLOT * (np.int64(key >> np.uint64(32)) & number(lexicon, lay.MASK))


@inline
def find_slot(lexicon: Words, table: int, at: int, one: np.uint64, other: np.uint64, length: int) -> int:
    """The slot of two keys and a length from slot `at` of a table on, or an empty one."""
    marked = np.uint64(length + 1)
    while True:
        if lexicon[at + 2] == np.uint64(0):
            return at
        if (lexicon[at] == one) & (lexicon[at + 1] == other) & (lexicon[at + 2] == marked):
            return at
        at += lay.SLOT
        if at == number(lexicon, table) + lay.SLOT * (number(lexicon, lay.MASK) + 1):
            at = number(lexicon, table)


@inline
def fill_slot(lexicon: Words, at: int, one: np.uint64, other: np.uint64, length: int, value: np.uint64) -> None:
    """Write an entry to an empty slot."""
    lexicon[at], lexicon[at + 1], lexicon[at + 2], lexicon[at + 3] = one, other, np.uint64(length + 1), value


@inline
def extend_pattern(key: np.uint64, token: np.uint64) -> np.uint64:
    """As `token_hash.extend_pattern` has it."""
    key = (key ^ token) * _MIX
    key ^= key >> np.uint64(33)
    return key if key else np.uint64(1)


@part
def number_token(data: Bytes, start: int, end: int, stop: int, lexicon: Words, tables: EnglishTables) -> int:
    """The number of a token, a new one if it was not there; FULL if there is no room for it."""
    one, other = keys_of(data, start, end, stop)
    key = hash_keys(one, other, end - start)
    slot = first_slot(lexicon, lay.TOKENS_AT, key)
    at = find_slot(lexicon, lay.TOKENS_AT, slot, one, other, end - start)
    if lexicon[at + 2]:
        return np.int64(lexicon[at + 3])
    token = number(lexicon, lay.NUM_TOKENS)
    if token == number(lexicon, lay.MOST_TOKENS):
        return FULL
    lexicon[lay.NUM_TOKENS] = np.uint64(token + 1)
    fill_slot(lexicon, at, one, other, end - start, np.uint64(token))
    record = number(lexicon, lay.RECORDS_AT) + lay.RECORD * token
    flags, chars = _describe(data, start, end, tables.classes)
    flags |= max(0, find_value(tables.words, TOKENS_TABLE, key))
    lexicon[record], lexicon[record + 1] = key, np.uint64(chars << lay.FLAG_BITS | flags)
    lexicon[record + 2], lexicon[record + 3] = np.uint64(end - start), np.uint64(0)
    return token


@part
def _describe(data: Bytes, start: int, end: int, classes: NDArray[np.uint32]) -> tuple[int, int]:
    """The flags of a token and its length in characters."""
    any_of, all_of, length, kinds = 0, -1, 0, 0
    at = start
    while at < end:
        kinds = class_at(data, at, classes)
        any_of |= kinds
        all_of &= kinds
        length += 1
        at += width_at(data, at)
    flags = lay.HAS_LETTER * (any_of & LETTER != 0) + lay.IS_SYMBOL * (all_of & SYMBOL != 0)
    flags += lay.IS_PUNCTUATION * (all_of & PUNCTUATION_CATEGORY != 0) + lay.IS_SPACE * (kinds & SPACE != 0)
    return flags + lay.ENDS_SENTENCE * (length == 1 and kinds & SENTENCE_END != 0), length
