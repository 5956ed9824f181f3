"""The pieces of a text between white space, a few hundred at a time, with the keys they are looked up by.

All of them are noted before the first is looked up, and the processor is told which lines of the lexicon will be
wanted: waiting for each in turn would take most of the time.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.blocks import word_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK
from gristmill.kernels.text.words_of_bytes import Bytes, count_trailing_zeros, prefetch
from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.affixes import hash_keys, keys_of
from gristmill.kernels.tokens.layout import PIECE_ARRAYS, PIECES
from gristmill.kernels.tokens.lexicon import Words

# Notes on each piece: array k holds notes[k * PIECES .. (k + 1) * PIECES].
STARTS, STOPS, PAIRS, ONES, OTHERS, BEHIND = range(0, (PIECE_ARRAYS + 1) * PIECES, PIECES)

Longs = NDArray[np.int64]

_MOST = PIECES - BLOCK // 2 - 1  # a block may begin half as many pieces as it has bytes
_ONE = np.uint64(1)


@inline
def find_pieces(
    data: Bytes, text: int, position: int, stop: int, begun: np.uint64, notes: Longs
) -> tuple[int, np.uint64, int]:
    """Note where pieces start and stop from `position` on, until there are many.

    begun    1 if the piece noted first began before `position`
    returns  where to go on, whether a piece is begun and not ended there, and how many pieces are whole
    """
    starts, stops = np.int64(begun), 0
    while position < stop and starts <= _MOST:
        inside, _, _ = word_bits(data, text, position, stop)
        before = inside << _ONE | begun
        begun = inside >> np.uint64(BLOCK - 1)
        begins, ends = inside & ~before, before & ~inside
        while begins:
            notes[STARTS + starts] = position + count_trailing_zeros(begins)
            begins &= begins - _ONE
            starts += 1
        while ends:
            notes[STOPS + stops] = position + count_trailing_zeros(ends)
            ends &= ends - _ONE
            stops += 1
        position += BLOCK
    if position >= stop and starts > stops:
        notes[STOPS + stops] = stop
        return position, np.uint64(0), starts
    return position, begun, stops


@inline
def look_up(data: Bytes, stop: int, lexicon: Words, mask: int, notes: Longs, total: int) -> None:
    """Note the keys of every piece, and the pair of slots it may lie in."""
    for k in range(total):
        start, end = notes[STARTS + k], notes[STOPS + k]
        one, other = keys_of(data, start, end, stop)
        pair = lay.PAIR * (np.int64(hash_keys(one, other, end - start) >> np.uint64(32)) & mask)
        prefetch(lexicon, pair)
        notes[PAIRS + k], notes[ONES + k], notes[OTHERS + k] = pair, np.int64(one), np.int64(other)
