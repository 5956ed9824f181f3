"""The tokens of texts, compiled; equal to `english.split_english`.

A text is looked at from left to right without ever going back, so time and memory grow with its length. Pieces between
white space are looked up in the lexicon, and cut only when they are new. Tokens lie end to end in the text without its
white space, the *solid* text: where each token starts is all that is needed, and what stands before it is noted beside.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.sizes import TEXTS, bytes_of_texts, longest_text, sized
from gristmill.kernels.text.words_of_bytes import Bytes, copy_bytes, count_trailing_zeros, store8
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.characters import Classes
from gristmill.kernels.tokens.cutting import cut_piece
from gristmill.kernels.tokens.english_tables import EnglishTables
from gristmill.kernels.tokens.layout import (
    CLASS_BLOCKS,
    COUNTS,
    NOTES,
    ROOM_BEHIND,
    SCRATCH_PER_BYTE,
    SPANS_PER_BYTE,
    TABLE_HEAD,
)
from gristmill.kernels.tokens.lexicon import Words, find_slot, learn, survey_tokens
from gristmill.kernels.tokens.pieces import BEHIND, ONES, OTHERS, PAIRS, STARTS, STOPS, find_pieces, look_up
from gristmill.kernels.tokens.rejoining import BLANK, NOTHING, SPACE, rejoin

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

# How far a text has been read, after what is noted of its pieces: end of the last piece, tokens, end of the solid
# text, ranges of tokens that may have to be put together, and whether the last token may start one.
_DONE, _COUNT, _WRITTEN, _SUSPECTS, _ENDS_APART = range(BEHIND, NOTES - 3)
_ONE_KEY, _TWO_KEYS = 8, 16  # pieces of up to this many bytes are wholly in their keys


@inline
def _gap(data: Bytes, text: int, start: int, end: int) -> int:
    """Return which white space separates two pieces; a blank right after a piece belongs to that piece."""
    if start == end:
        return NOTHING
    return BLANK if (start > text) & (end == start + 1) & (data[start] == 0x20) else SPACE


@inline
def _write_solid(data: Bytes, start: int, end: int, one: np.uint64, other: np.uint64, solid: Bytes, at: int) -> int:
    """Write a piece by its keys, which are in registers already; return where it ends."""
    length = end - start
    if length > _TWO_KEYS:
        return copy_bytes(data, start, end, solid, at)
    store8(solid, at, one)
    if length > _ONE_KEY:
        store8(solid, at + length - 8, other)
    return at + length


@part
def _put_long(
    data: Bytes,
    start: int,
    end: int,
    tables: EnglishTables,
    spans: Ints,
    at: int,
    places: Ints,
    gaps: Bytes,
    count: int,
    counts: Longs,
    row: int,
) -> tuple[int, int]:
    """Cut a piece that is too long to be remembered; return how many tokens there are, and the flags of the piece."""
    total = cut_piece(data, start, end, spans, tables)
    for k in range(total):
        places[count + k] = at + np.int64(spans[2 * k])
        gaps[count + k] = NOTHING
    words, chars, letters, flags = survey_tokens(data, start, spans, total, tables)
    counts[row] += words
    counts[row + 1] += chars
    counts[row + 2] += letters
    return count + total, flags


@inline
def _put_pieces(
    data: Bytes,
    text: int,
    lexicon: Words,
    tables: EnglishTables,
    notes: Longs,
    total: int,
    spans: Ints,
    scratch: Ints,
    solid: Bytes,
    base: int,
    places: Ints,
    gaps: Bytes,
    counts: Longs,
    row: int,
) -> None:
    """Write the tokens of the pieces that are noted, and add up what is known of them."""
    done, count, written, suspects = notes[_DONE], notes[_COUNT], notes[_WRITTEN], notes[_SUSPECTS]
    ends_apart = notes[_ENDS_APART]
    words = chars = letters = 0
    for k in range(total):
        start, end = notes[STARTS + k], notes[STOPS + k]
        one, other, pair = np.uint64(notes[ONES + k]), np.uint64(notes[OTHERS + k]), notes[PAIRS + k]
        first = count
        gap = _gap(data, text, done, start)
        done = end
        if end - start > lay.LONGEST_PIECE:
            count, flags = _put_long(data, start, end, tables, spans, written - base, places, gaps, count, counts, row)
            gaps[first] = gap
            about = np.int64(flags)
        else:
            slot = find_slot(lexicon, pair, one, other, end - start)
            if slot < 0:
                slot = learn(data, start, end, one, other, lexicon, pair, tables, spans)
            tokens, about = lexicon[slot + 2], np.int64(lexicon[slot + 3])
            while tokens:
                places[count] = written - base + count_trailing_zeros(tokens)
                gaps[count] = gap
                gap = NOTHING
                tokens &= tokens - np.uint64(1)
                count += 1
            words += about >> lay.WORDS & lay.FIELD
            chars += about >> lay.WORD_CHARS & lay.FIELD
            letters += about >> lay.LETTERS & lay.FIELD
        written = _write_solid(data, start, end, one, other, solid, written)
        goes_on = ends_apart and about & lay.BEGINS_APART
        ends_apart = about & lay.ENDS_APART
        if goes_on or about & lay.IS_APART:
            scratch[2 * suspects] = first - 1 if goes_on else first
            scratch[2 * suspects + 1] = count if about & lay.IS_APART else first
            suspects += 1
    notes[_DONE], notes[_COUNT], notes[_WRITTEN], notes[_SUSPECTS] = done, count, written, suspects
    notes[_ENDS_APART] = ends_apart
    counts[row] += words
    counts[row + 1] += chars
    counts[row + 2] += letters


@sized(
    **TEXTS,
    classes=lambda: CLASS_BLOCKS,
    words=lambda: TABLE_HEAD,
    lexicon=lambda mask: lay.PAIR * (mask + 1),
    notes=lambda: NOTES,
    spans=lambda starts, stops, documents: SPANS_PER_BYTE * (longest_text(starts, stops, documents) + ROOM_BEHIND),
    scratch=lambda starts, stops, documents: SCRATCH_PER_BYTE * (longest_text(starts, stops, documents) + ROOM_BEHIND),
    solid=lambda starts, stops, documents: bytes_of_texts(starts, stops, documents) + ROOM_BEHIND,
    firsts=lambda documents: documents + 1,
    places=lambda starts, stops, documents: bytes_of_texts(starts, stops, documents) + documents,
    gaps=lambda starts, stops, documents: bytes_of_texts(starts, stops, documents) + documents,
    offsets=lambda documents: documents + 1,
    counts=lambda documents: documents * COUNTS,
)
def tokenize(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    documents: int,
    classes: Classes,
    words: Words,
    lexicon: Words,
    mask: int,
    notes: Longs,
    spans: Ints,
    scratch: Ints,
    solid: Bytes,
    firsts: Longs,
    places: Ints,
    gaps: Bytes,
    offsets: Longs,
    counts: Longs,
) -> None:
    """Cut texts into tokens.

    classes, words  the tables of `english_tables`
    lexicon, mask   what was learnt before, see `lexicon_layout`; pairs of slots less one
    notes           [NOTES]
    spans, scratch  two and eight numbers for each byte of the longest text and eight bytes more
    solid           the texts without white space; room for eight bytes more
    firsts          [D + 1] where each solid text begins, and where the last one ends
    places, gaps    [T] where tokens start in their solid text, and what stands before them; one more for each text,
                    which is where it ends. Room for one per byte, and those.
    offsets         [D + 1] text d has tokens offsets[d] to offsets[d + 1] - 1
    counts          [D, 3] zeros, see COUNTS
    """
    tables = EnglishTables(classes, words)
    offsets[0] = firsts[0] = 0
    for d in range(documents):
        text, stop, base = starts[d], stops[d], firsts[d]
        notes[_DONE], notes[_COUNT], notes[_WRITTEN] = text, offsets[d], base
        notes[_SUSPECTS] = notes[_ENDS_APART] = 0
        position, begun = text, np.uint64(0)
        while position < stop:
            position, begun, total = find_pieces(data, text, position, stop, begun, notes)
            look_up(data, stop, lexicon, mask, notes, total)
            _put_pieces(
                data, text, lexicon, tables, notes, total, spans, scratch, solid, base, places, gaps, counts, d * COUNTS
            )
            notes[STARTS] = notes[STARTS + total]  # of the piece that is begun
        end = notes[_COUNT]
        firsts[d + 1] = notes[_WRITTEN]
        places[end], gaps[end] = notes[_WRITTEN] - base, _gap(data, text, notes[_DONE], stop)
        if notes[_SUSPECTS]:
            suspects = notes[_SUSPECTS]
            end = rejoin(solid, base, tables, scratch, suspects, places, gaps, offsets[d], end, counts, d * COUNTS)
        offsets[d + 1] = end + 1
