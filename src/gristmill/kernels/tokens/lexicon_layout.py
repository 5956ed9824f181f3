"""The lexicon of tokens as one array of words, for Python and compiled code alike: what lies where in it.

Text repeats itself: of a hundred pieces between white space, ninety were there before. The lexicon remembers what each
was cut into, and numbers the tokens. It grows from batch to batch and is thrown away when it is full.

    head      the numbers below
    pieces    hash table: two keys, length + 1 (0: empty), and what it was cut into: one token, or several parts
    tokens    hash table: two keys, length + 1 (0: empty), number of the token
    records   for each token: hash, chars << 8 | flags, bytes, turn << 32 | how often it was counted in that turn
    parts     for each token of a piece: start in the piece << 32 | number of the token
"""

import numpy as np
from numpy.typing import NDArray

Lexicon = NDArray[np.uint64]

# Of a token, in its record, beside those of `english_tables`.
HAS_LETTER, IS_SYMBOL, IS_PUNCTUATION, ENDS_SENTENCE, IS_SPACE = 1, 2, 4, 8, 16
FLAG_BITS = 8

# Numbers of the head: size of the hash tables less one, how many there may be and are, where things begin.
MASK, PIECES_AT, TOKENS_AT, RECORDS_AT, PARTS_AT, MOST_PIECES, MOST_TOKENS, MOST_PARTS = range(8)
NUM_PIECES, NUM_TOKENS, NUM_PARTS, TURN = range(8, 12)
_HEAD = 16
SLOT = RECORD = 4  # words

LONGEST_PIECE = 255  # bytes that are remembered; longer ones are mostly data and come once


def new_lexicon(bits: int) -> Lexicon:
    """Return an empty lexicon for half of 2**bits pieces, as many tokens, and 2**bits parts of pieces."""
    size = 1 << bits
    words = np.zeros(_HEAD + SLOT * size + SLOT * size + RECORD * size // 2 + size, np.uint64)
    starts = np.cumsum([_HEAD, SLOT * size, SLOT * size, RECORD * size // 2])
    words[MASK] = size - 1
    words[PIECES_AT : PARTS_AT + 1] = starts
    words[[MOST_PIECES, MOST_TOKENS, MOST_PARTS]] = size // 2, size // 2, size
    return words


def fullness(lexicon: Lexicon) -> float:
    """How much of the room is used, 1.0 at most."""
    used, room = lexicon[NUM_PIECES : NUM_PARTS + 1], lexicon[MOST_PIECES : MOST_PARTS + 1]
    return float((used / room).max())


def records(lexicon: Lexicon) -> Lexicon:
    """The records of all tokens known, one row each."""
    start = int(lexicon[RECORDS_AT])
    return lexicon[start : start + RECORD * int(lexicon[NUM_TOKENS])].reshape(-1, RECORD)
