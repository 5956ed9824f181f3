"""The second pass of tokenisation: exceptions that the first pass cut are put together again.

Longest first, then leftmost, none overlapping; one across a blank is not rejoined, but others cannot take its place.
Tokens are given as in `tokenize`: where they start in the text without white space, and what stands before them.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens.affixes import find_value, hash_span
from gristmill.kernels.tokens.cutting import exception_at
from gristmill.kernels.tokens.english_tables import IS_START, IS_WHOLE, PARTS, PATTERNS_TABLE, EnglishTables
from gristmill.kernels.tokens.lexicon import HAS_LETTER, IS_SYMBOL, describe

NOTHING, BLANK, SPACE = range(3)  # before a token: nothing, one blank, white space that is a token itself

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_LONGEST_PATTERN = 11  # tokens
_MIX = np.uint64(0xFF51AFD7ED558CCD)  # as in `token_hash.extend_pattern`
# The arrays of `rejoin` in the scratch space, one number per token each; after them lie the rewritten tokens.
_CHOSEN, _COVERED, _FOUND, _SIZES, _ANEW = range(5)


@part
def rejoin(
    solid: Bytes,
    base: int,
    tables: EnglishTables,
    scratch: Ints,
    suspects: int,
    places: Ints,
    gaps: Bytes,
    first: int,
    end: int,
    counts: Longs,
    row: int,
) -> int:
    """Rejoin tokens [first, end) where exceptions were cut; return where they end then.

    scratch  [...]  `suspects` ranges of tokens an exception can start with, in order; after them, room for six
                    numbers per byte
    counts   what is counted in the text from `row` on, as `survey_tokens` has it: kept up to date
    """
    size, room = end - first, 2 * suspects
    candidates = examined = 0
    for suspect in range(suspects):
        begin: int = np.int64(scratch[2 * suspect]) - first
        reached: int = np.int64(scratch[2 * suspect + 1]) - first
        for token in range(max(examined, begin), reached):
            sizes = _sizes(solid, base, tables, places, gaps, first + token, end)
            scratch[room + _FOUND * size + candidates] = token
            scratch[room + _SIZES * size + candidates] = sizes
            candidates += sizes != 0
        examined = max(examined, reached)
    if candidates == 0:
        return end
    for token in range(size):
        scratch[room + _CHOSEN * size + token] = scratch[room + _COVERED * size + token] = 0
    for length in range(_LONGEST_PATTERN, 0, -1):
        for candidate in range(candidates):
            if np.int64(scratch[room + _SIZES * size + candidate]) >> length & 1:
                token = np.int64(scratch[room + _FOUND * size + candidate])
                covered = room + _COVERED * size + token
                if not scratch[covered] and not scratch[covered + length - 1]:
                    scratch[room + _CHOSEN * size + token] = length
                for k in range(length):
                    scratch[covered + k] = 1
    return _rebuild(solid, base, tables, scratch, room, places, gaps, first, end, counts, row)


@inline
def _extend_pattern(key: np.uint64, token: np.uint64) -> np.uint64:
    """As `token_hash.extend_pattern` has it."""
    key = (key ^ token) * _MIX
    key ^= key >> np.uint64(33)
    return key if key else np.uint64(1)


@part
def _sizes(solid: Bytes, base: int, tables: EnglishTables, places: Ints, gaps: Bytes, first: int, end: int) -> int:
    """One bit for each length of a cut-up exception that starts here."""
    sizes = 0
    key = np.uint64(0)
    for token in range(first, min(end, first + _LONGEST_PATTERN)):
        if token > first and gaps[token] == SPACE:
            break
        low, high = base + np.int64(places[token]), base + np.int64(places[token + 1])
        key = _extend_pattern(key, hash_span(solid, low, high))
        kind = find_value(tables.words, PATTERNS_TABLE, key)
        if kind < 0:
            break
        if kind & IS_WHOLE:
            sizes |= 1 << (token + 1 - first)
        if not kind & IS_START:
            break
    return sizes


@part
def _rebuild(
    solid: Bytes,
    base: int,
    tables: EnglishTables,
    scratch: Ints,
    room: int,
    places: Ints,
    gaps: Bytes,
    first: int,
    end: int,
    counts: Longs,
    row: int,
) -> int:
    """Rewrite the tokens from the first candidate on, with chosen exceptions rejoined; return where they end."""
    size = end - first
    anew = room + _ANEW * size  # pairs of place and gap
    begin = token = np.int64(scratch[room + _FOUND * size])
    total = 0
    while token < size:
        length: int = np.int64(scratch[room + _CHOSEN * size + token])
        exception = -1
        if length and not _has_blank(gaps, first + token, first + token + length):
            low, high = np.int64(places[first + token]), np.int64(places[first + token + length])
            exception = exception_at(solid, base + low, base + high, tables)
        length = max(length, 1)
        if exception >= 0:
            for k in range(first + token, first + token + length):
                _count(solid, base + np.int64(places[k]), base + np.int64(places[k + 1]), -1, tables, counts, row)
            part_at = np.int64(tables.words[PARTS]) + exception
            at, gap = np.int64(places[first + token]), gaps[first + token]
            while tables.words[part_at]:
                scratch[anew + 2 * total], scratch[anew + 2 * total + 1] = at, gap
                part_end = at + np.int64(tables.words[part_at])
                _count(solid, base + at, base + part_end, 1, tables, counts, row)
                at, gap, total, part_at = part_end, np.uint8(NOTHING), total + 1, part_at + 1
        else:
            for k in range(first + token, first + token + length):
                scratch[anew + 2 * total], scratch[anew + 2 * total + 1] = places[k], gaps[k]
                total += 1
        token += length
    behind, gap_behind = places[end], gaps[end]
    for k in range(total):
        places[first + begin + k] = scratch[anew + 2 * k]
        gaps[first + begin + k] = np.uint8(scratch[anew + 2 * k + 1])
    end = first + begin + total
    places[end], gaps[end] = behind, gap_behind
    return end


@part
def _count(solid: Bytes, low: int, high: int, sign: int, tables: EnglishTables, counts: Longs, row: int) -> None:
    """Add a token to what is counted, or take it away."""
    flags, size = describe(solid, low, high, tables.classes)
    if not flags & IS_SYMBOL:
        counts[row] += sign
        counts[row + 1] += sign * size
    counts[row + 2] += sign * (flags & HAS_LETTER)


@inline
def _has_blank(gaps: Bytes, first: int, end: int) -> bool:
    for token in range(first + 1, end):
        if gaps[token] != NOTHING:
            return True
    return False
