"""`unicode_words`: the words of Unicode's segmentation (UAX 29) that begin with a letter or digit.

The package `uniseg` knows the rules for all of Unicode and takes 10 µs a character; what is ASCII between white space
is cut by an expression that says what they come to there. No rule breaks or joins a word across white space.
"""

import re
from typing import cast

from gristmill.errors import require

# Letters with one : . or ' between them, digits with one , ; . or ', all of them joined by underscores.
_ASCII_WORD = re.compile(r"\w+(?:(?:(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))\w+)*", re.ASCII)
_PIECE = re.compile(r"[^ \t\n\r\v\f]+")


def unicode_words(text: str) -> list[str]:
    """Return the words in order."""
    if text.isascii():
        return _begun_well(_ASCII_WORD.findall(text))
    known: dict[str, list[str]] = {}
    words: list[str] = []
    for piece in _PIECE.findall(text):
        if piece not in known:
            known[piece] = _begun_well(_ASCII_WORD.findall(piece) if piece.isascii() else _segmented(piece))
        words += known[piece]
    return words


def _segmented(piece: str) -> list[str]:
    return cast("list[str]", list(require("uniseg.wordbreak", extra="dclm").words(piece)))


def _begun_well(words: list[str]) -> list[str]:
    return [word for word in words if word[0].isalnum()]
