"""The tokens of texts, compiled; equal to `english.split_english`.

A text is looked at from left to right without ever going back, so time and memory grow with its length. Pieces between
white space are looked up in the lexicon, and cut only when they are new.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.ngrams import split
from gristmill.kernels.text.words_of_bytes import Bytes, prefetch
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.affixes import hash_keys, keys_of
from gristmill.kernels.tokens.characters import Classes
from gristmill.kernels.tokens.cutting import cut_piece
from gristmill.kernels.tokens.english_tables import IS_ALONE, STARTS, EnglishTables
from gristmill.kernels.tokens.lexicon import FULL, Words, fill_slot, find_slot, first_slot, number, number_token
from gristmill.kernels.tokens.rejoining import rejoin

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

COUNTS = 5  # tokens, words, characters of words, tokens with a letter, most characters (and one each) of one token

# What a piece was cut into, in one number: one token (MANY is not set), or many parts from the first on.
_LOW_HALF = np.uint64(0xFFFFFFFF)
_MANY = np.uint64(1 << 63)
_TOKENS = np.uint64(0x7FFFFFFF)
_NO_ROOM = np.uint64(0xFFFFFFFFFFFFFFFF)

_SLOTS, _ONES, _OTHERS = 2, 3, 4  # what is noted of each piece, behind where it starts and stops


@inline
def _put_known(entry: np.uint64, offset: int, lexicon: Words, ids: Ints, places: Ints, count: int) -> int:
    """Write the tokens of a piece that is remembered; return how many there are in all."""
    low = np.int64(entry & _LOW_HALF)
    if not entry & _MANY:
        ids[count], places[count] = np.int32(low), np.int32(offset)
        prefetch(lexicon, number(lexicon, lay.RECORDS_AT) + lay.RECORD * low)
        return count + 1
    first = number(lexicon, lay.PARTS_AT) + low
    tokens = np.int64(entry >> np.uint64(32) & _TOKENS)
    for k in range(tokens):
        known = lexicon[first + k]
        token = np.int64(known & _LOW_HALF)
        ids[count + k], places[count + k] = np.int32(token), np.int32(offset + np.int64(known >> np.uint64(32)))
        prefetch(lexicon, number(lexicon, lay.RECORDS_AT) + lay.RECORD * token)
    return count + tokens


@part
def _learn(
    data: Bytes, start: int, end: int, stop: int, lexicon: Words, tables: EnglishTables, spans: Ints
) -> np.uint64:
    """Cut a new piece that is short, and remember its parts; return what stands for it, FULL if there is no room."""
    count = cut_piece(data, start, end, spans, tables)
    first = number(lexicon, lay.NUM_PARTS)
    if number(lexicon, lay.NUM_PIECES) == number(lexicon, lay.MOST_PIECES):
        return _NO_ROOM
    if first + count > number(lexicon, lay.MOST_PARTS):
        return _NO_ROOM
    token = 0
    for k in range(count):
        low, high = np.int64(spans[2 * k]), np.int64(spans[2 * k + 1])
        token = number_token(data, start + low, start + high, stop, lexicon, tables)
        if token == FULL:
            return _NO_ROOM
        lexicon[number(lexicon, lay.PARTS_AT) + first + k] = np.uint64(low << 32 | token)
    lexicon[lay.NUM_PIECES] += np.uint64(1)
    if count == 1:
        return np.uint64(token)
    lexicon[lay.NUM_PARTS] += np.uint64(count)
    return np.uint64(count << 32 | first) | _MANY


@part
def _put_long(
    data: Bytes,
    text: int,
    start: int,
    end: int,
    lexicon: Words,
    tables: EnglishTables,
    spans: Ints,
    ids: Ints,
    places: Ints,
    count: int,
) -> int:
    """Cut a piece that is too long to be remembered; return how many tokens there are, FULL if there is no room."""
    for k in range(cut_piece(data, start, end, spans, tables)):
        low, high = start + np.int64(spans[2 * k]), start + np.int64(spans[2 * k + 1])
        token = number_token(data, low, high, end, lexicon, tables)
        if token == FULL:
            return FULL
        ids[count], places[count] = np.int32(token), np.int32(low - text)
        count += 1
    return count


@part
def _put_space(
    data: Bytes,
    text: int,
    start: int,
    end: int,
    lexicon: Words,
    tables: EnglishTables,
    ids: Ints,
    places: Ints,
    count: int,
) -> int:
    """Write the white space between two pieces as a token; a blank right behind a piece belongs to that."""
    if start > text and start < end and data[start] == 0x20:
        start += 1
    if start == end:
        return count
    token = number_token(data, start, end, end, lexicon, tables)
    if token == FULL:
        return FULL
    ids[count], places[count] = np.int32(token), np.int32(start - text)
    return count + 1


@inline
def _look_ahead(data: Bytes, stop: int, lexicon: Words, pieces: Longs, room: int, total: int) -> None:
    """Note the keys of every piece, and have the processor fetch the slots: waiting for each would take most time."""
    for k in range(total):
        start, end = pieces[k], pieces[room + k]
        one, other = keys_of(data, start, end, stop)
        slot = first_slot(lexicon, lay.PIECES_AT, hash_keys(one, other, end - start))
        prefetch(lexicon, slot)
        pieces[_SLOTS * room + k] = slot
        pieces[_ONES * room + k], pieces[_OTHERS * room + k] = np.int64(one), np.int64(other)


@inline
def _tokens_of_text(
    data: Bytes,
    text: int,
    stop: int,
    with_space: int,
    lexicon: Words,
    tables: EnglishTables,
    pieces: Longs,
    room: int,
    scratch: Ints,
    ids: Ints,
    places: Ints,
    first: int,
) -> int:
    """Write the tokens of one text from `first` on; return where they end, FULL if the lexicon has no room."""
    count = first
    done = text
    total = split(data, text, stop, pieces, room)
    _look_ahead(data, stop, lexicon, pieces, room, total)
    for k in range(total):
        start, end = pieces[k], pieces[room + k]
        if with_space:
            count = _put_space(data, text, done, start, lexicon, tables, ids, places, count)
            done = end
            if count == FULL:
                return FULL
        if end - start > lay.LONGEST_PIECE:
            count = _put_long(data, text, start, end, lexicon, tables, scratch, ids, places, count)
            if count == FULL:
                return FULL
            continue
        one, other = np.uint64(pieces[_ONES * room + k]), np.uint64(pieces[_OTHERS * room + k])
        slot = find_slot(lexicon, lay.PIECES_AT, pieces[_SLOTS * room + k], one, other, end - start)
        entry = lexicon[slot + 3]
        if not lexicon[slot + 2]:
            entry = _learn(data, start, end, stop, lexicon, tables, scratch)
            if entry == _NO_ROOM:
                return FULL
            fill_slot(lexicon, slot, one, other, end - start, entry)
        count = _put_known(entry, start - text, lexicon, ids, places, count)
    if with_space:
        count = _put_space(data, text, done, stop, lexicon, tables, ids, places, count)
    return count


@inline
def _measure(lexicon: Words, ids: Ints, first: int, end: int, counts: Longs, row: int) -> bool:
    """Add up what is known of the tokens of one text; return whether some might have to be put together again."""
    words = chars = letters = most = before = apart = 0
    turn = lexicon[lay.TURN] + np.uint64(1)
    lexicon[lay.TURN] = turn
    records = number(lexicon, lay.RECORDS_AT)
    for k in range(first, end):
        record = records + lay.RECORD * np.int64(ids[k])
        about = np.int64(lexicon[record + 1])
        size = about >> lay.FLAG_BITS
        is_word = 0 if about & lay.IS_SYMBOL else 1
        words += is_word
        chars += is_word * size
        letters += about & lay.HAS_LETTER
        apart |= about & IS_ALONE | (before & STARTS) << 1 & about  # GOES_ON is one bit above STARTS
        before = about
        seen = lexicon[record + 3]
        times = np.int64(seen & _LOW_HALF) + 1 if seen >> np.uint64(32) == turn else 1
        lexicon[record + 3] = turn << np.uint64(32) | np.uint64(times)
        most = max(most, times * (size + 1))
    counts[row], counts[row + 1], counts[row + 2] = end - first, words, chars
    counts[row + 3], counts[row + 4] = letters, most
    return apart != 0


def tokenize(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    documents: int,
    with_space: int,
    classes: Classes,
    words: Words,
    lexicon: Words,
    pieces: Longs,
    room: int,
    scratch: Ints,
    ids: Ints,
    places: Ints,
    offsets: Longs,
    counts: Longs,
) -> int:
    """Cut texts into tokens; return D, or the first text for whose tokens the lexicon has no room.

    with_space      1 if white space between tokens is a token too
    classes, words  the tables of `english_tables`
    lexicon         what was learnt before, see `lexicon_layout`
    pieces [5 * room], scratch [6 a byte]   room for the longest text, in pieces and bytes
    ids, places     [T] numbers of the tokens, and where they start in their texts; room for one a byte
    offsets         [D + 1] text d has tokens offsets[d] to offsets[d + 1]
    counts          [D, 5] see COUNTS
    """
    tables = EnglishTables(classes, words)
    offsets[0] = 0
    for d in range(documents):
        first = offsets[d]
        end = _tokens_of_text(
            data, starts[d], stops[d], with_space, lexicon, tables, pieces, room, scratch, ids, places, first
        )
        if end == FULL:
            return d
        if _measure(lexicon, ids, first, end, counts, d * COUNTS):
            end = rejoin(data, starts[d], stops[d], lexicon, tables, scratch, ids, places, first, end)
            if end == FULL:
                return d
            _measure(lexicon, ids, first, end, counts, d * COUNTS)
        offsets[d + 1] = end
    return documents
