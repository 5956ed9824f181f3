"""What the compiled tokeniser and the rules on words know of a character: one bit for each class, for every code point.

The table is made of Python's own answers (`isspace`, `isalpha`, `\\w`, `\\d`, categories), so that the compiled forms
agree with plain Python whatever version of Unicode it has.
"""

import unicodedata

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import english_characters as english
from gristmill.kernels.tokens.marks import LINE_ENDS, SENTENCE_ENDS, SYMBOLS

ALPHA, LOWER, UPPER, ICON, PUNCTUATION, QUOTE, MONEY = (1 << bit for bit in range(7))
FRONT, DASH, WORD, DECIMAL, SPACE, BEFORE_FULL_STOP, HOST = (1 << bit for bit in range(7, 14))
LETTER, SYMBOL, PUNCTUATION_CATEGORY, SENTENCE_END, UNIT_END, INNER, LINE_END = (1 << bit for bit in range(14, 21))

_TABLE_SIZE = 0x110000
# As far as Python knows, no code point in between is assigned.
_SURVEYED = ((0, 0x32400), (0xE0000, 0xE0200))


def class_table() -> NDArray[np.uint32]:
    """Return the classes of every code point in two steps: those of code point c are at t[t[c >> 8] + (c & 255)].

    Most blocks of 256 code points equal another one, so the table is a thirtieth of one with a place for each.
    """
    blocks, places = np.unique(_classes().reshape(-1, 256), axis=0, return_inverse=True)
    starts = len(places) + 256 * np.arange(len(blocks), dtype=np.uint32)
    return np.concatenate([starts[places.ravel()], blocks.ravel()])


def _classes() -> NDArray[np.uint32]:
    table = np.zeros(_TABLE_SIZE, np.uint32)
    for start, end in _SURVEYED:
        _survey(table, start, end)
    for points, bit in (
        (english.PUNCTUATION, PUNCTUATION),
        (english.QUOTES, QUOTE),
        ([money for money in english.CURRENCY if len(money) == 1], MONEY),
        ("§%=—–", FRONT),
        ("—–", DASH),
        ("0123456789%²-+|" + english.PUNCTUATION + english.QUOTES, BEFORE_FULL_STOP),
        (SYMBOLS, SYMBOL),
        (SENTENCE_ENDS, SENTENCE_END),
        (LINE_ENDS, LINE_END),
        ("*+,-./:<=>^~…–—", INNER),
        ([unit[-1] for unit in (*english.UNITS, *english.CURRENCY, "+")], UNIT_END),
    ):
        table[[ord(point) for point in set(points)]] |= np.uint32(bit)
    for kind, bit in (("alpha", ALPHA), ("lower", LOWER | BEFORE_FULL_STOP), ("upper", UPPER), ("icons", ICON | INNER)):
        for first, last in english.class_ranges()[kind]:
            table[first : last + 1] |= np.uint32(bit)
    table[0xA1:0x10000] |= np.uint32(HOST)
    table[[ord(c) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"]] |= np.uint32(HOST)
    return table


def _survey(table: NDArray[np.uint32], start: int, end: int) -> None:
    characters = list(map(chr, range(start, end)))
    letter = np.array([c.isalpha() for c in characters])
    number = np.array([c.isalnum() or c == "_" for c in characters])
    category = [unicodedata.category(c) for c in characters]
    for bit, members in (
        (LETTER, letter),
        (WORD, number),
        (SPACE, np.array([c.isspace() for c in characters])),
        (DECIMAL, np.array([kind == "Nd" for kind in category])),
        (PUNCTUATION_CATEGORY, np.array([kind[0] == "P" for kind in category])),
    ):
        table[start:end] |= members.astype(np.uint32) * np.uint32(bit)
