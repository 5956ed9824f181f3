"""The lexicon of pieces as one array of words, for Python and compiled code alike: what lies where in it.

Text repeats itself: of a hundred pieces between white space, ninety have come before. The lexicon remembers what each
was cut into and what is counted in it. It never fills up: a piece may lie in one of the two slots of its pair, and a
new one takes the place of the older.

    slot    two keys, see `token_hash.keys_of`; where tokens start, one bit per byte; what is known of the piece, below
"""

import numpy as np
from numpy.typing import NDArray

Lexicon = NDArray[np.uint64]

SLOT = 4  # words
PAIR = 2 * SLOT  # one line of the processor's cache
LONGEST_PIECE = 64  # bytes that are remembered; longer ones are mostly data and come once

# Notes on a piece: its length (0 in an empty slot), tokens that are words, their characters, tokens with a
# letter, seven bits each; and what may make it part of a cut-up exception, see `english_tables`.
FIELD_BITS = 7
LENGTH, WORDS, WORD_CHARS, LETTERS = (FIELD_BITS * field for field in range(4))
FIELD = (1 << FIELD_BITS) - 1
IS_APART, ENDS_APART, BEGINS_APART = (1 << (FIELD_BITS * 4 + bit) for bit in range(3))


def new_lexicon(bits: int) -> Lexicon:
    """Return an empty lexicon of 2**bits pairs, each in one line of the cache."""
    words = np.zeros((PAIR << bits) + PAIR, np.uint64)
    first = -(words.ctypes.data // 8) % PAIR
    return words[first : first + (PAIR << bits)]
