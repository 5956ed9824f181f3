"""The form each character takes before texts are compared: lower case, without accents, punctuation as a separator.

    letter, digit      its base letter in lower case ("É" -> "e")
    combining mark     nothing
    anything else      a separator

Scripts that are written without spaces have no words to speak of: each of their characters stands for itself.
"""

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

SEPARATOR = 0
IGNORED = 1
ALONE = 1 << 24  # added to the code of a character that is a word of its own
SIZE = 0x10000  # the basic plane; the kernels take characters beyond it as they are

# Han, kana, Thai, Lao, Tibetan, Burmese, Khmer: blocks of the Unicode standard, first and last code point.
_UNSPACED = ((0x0E00, 0x0FFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF))


@cache
def fold_table() -> NDArray[np.uint32]:
    """Return uint32[65536]: what a code point becomes."""
    table = np.fromiter((_folded(chr(code)) for code in range(SIZE)), np.uint32, SIZE)
    for first, last in _UNSPACED:
        block = table[first : last + 1]
        block[block > IGNORED] |= ALONE
    table.setflags(write=False)
    return table


def _folded(character: str) -> int:
    category = unicodedata.category(character)
    if category[0] == "M":
        return IGNORED
    if category[0] not in "LN":
        return SEPARATOR
    base = unicodedata.normalize("NFD", character)[0].lower()
    return ord(unicodedata.normalize("NFD", base)[0])
