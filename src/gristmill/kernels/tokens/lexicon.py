"""Compiled access to the lexicon: what a piece was cut into, and learning it."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.affixes import find_value, hash_span
from gristmill.kernels.tokens.characters import class_at, width_at
from gristmill.kernels.tokens.code_points import LETTER, PUNCTUATION_CATEGORY, SENTENCE_END, SYMBOL
from gristmill.kernels.tokens.cutting import Spans, cut_piece
from gristmill.kernels.tokens.english_tables import GOES_ON, IS_ALONE, STARTS, TOKENS_TABLE, EnglishTables

Words = NDArray[np.uint64]

HAS_LETTER, IS_SYMBOL, IS_PUNCTUATION, ENDS_SENTENCE = 1, 2, 4, 8  # of a token

_FIELD = np.uint64(lay.FIELD)
_LONGEST_ROLE = 8  # bytes of a token that exceptions are cut into
_ONE = np.uint64(1)


@inline
def find_slot(lexicon: Words, pair: int, one: np.uint64, other: np.uint64, length: int) -> int:
    """The slot of a pair that has this piece, or -1."""
    for at in (pair, pair + lay.SLOT):
        if (lexicon[at] == one) & (lexicon[at + 1] == other) & (lexicon[at + 3] & _FIELD == np.uint64(length)):
            return at
    return -1


@part
def learn(
    data: Bytes,
    start: int,
    end: int,
    one: np.uint64,
    other: np.uint64,
    lexicon: Words,
    pair: int,
    tables: EnglishTables,
    spans: Spans,
) -> int:
    """Cut a new piece and remember it; what was learnt before goes to the second slot. Return its slot."""
    for word in range(lay.SLOT):
        lexicon[pair + lay.SLOT + word] = lexicon[pair + word]
    count = cut_piece(data, start, end, spans, tables)
    starts = np.uint64(0)
    for token in range(count):
        starts |= _ONE << np.uint64(spans[2 * token])
    words, chars, letters, apart = survey_tokens(data, start, spans, count, tables)
    about = words << lay.WORDS | chars << lay.WORD_CHARS | letters << lay.LETTERS | apart
    lexicon[pair], lexicon[pair + 1], lexicon[pair + 2] = one, other, starts
    lexicon[pair + 3] = np.uint64(end - start | about)
    return pair


@part
def survey_tokens(
    data: Bytes, start: int, spans: Spans, count: int, tables: EnglishTables
) -> tuple[int, int, int, int]:
    """Words, their characters, tokens with a letter, and flags: may tokens be put together, within and at the ends."""
    words = chars = letters = apart = before = 0
    for token in range(count):
        low, high = start + np.int64(spans[2 * token]), start + np.int64(spans[2 * token + 1])
        flags, size = describe(data, low, high, tables.classes)
        is_word = 0 if flags & IS_SYMBOL else 1
        words += is_word
        chars += is_word * size
        letters += flags & HAS_LETTER
        role = 0
        if high - low <= _LONGEST_ROLE:
            role = max(0, find_value(tables.words, TOKENS_TABLE, hash_span(data, low, high)))
        if role & IS_ALONE or (before & STARTS and role & GOES_ON):
            apart |= lay.IS_APART
        if token == 0 and role & GOES_ON:
            apart |= lay.BEGINS_APART
        before = role
    return words, chars, letters, apart | (lay.ENDS_APART if before & STARTS else 0)


@part
def describe(data: Bytes, start: int, end: int, classes: NDArray[np.uint32]) -> tuple[int, int]:
    """The flags of a token and its length in characters."""
    any_of, all_of, length, kinds = 0, -1, 0, 0
    at = start
    while at < end:
        kinds = class_at(data, at, classes)
        any_of |= kinds
        all_of &= kinds
        length += 1
        at += width_at(data, at)
    flags = HAS_LETTER * (any_of & LETTER != 0) + IS_SYMBOL * (all_of & SYMBOL != 0)
    flags += IS_PUNCTUATION * (all_of & PUNCTUATION_CATEGORY != 0)
    return flags + ENDS_SENTENCE * (length == 1 and kinds & SENTENCE_END != 0), length
