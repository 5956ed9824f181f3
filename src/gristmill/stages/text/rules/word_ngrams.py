"""Words and n-grams for sets that are not compiled: `unicode_words`, and `WordNGrams` of any list of words.

The words are those of Unicode's segmentation (UAX 29) that begin with a letter or digit. The package `uniseg` knows the
rules for all of Unicode and takes 10 µs a character; what is ASCII between white space is cut by an expression that
gives the same words there. None of its rules breaks or joins a word across white space.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import check_installed, require

Longs = NDArray[np.int64]

# Letters with one : . or ' between them, digits with one , ; . or ', all of them joined by underscores.
_ASCII_WORD = re.compile(r"\w+(?:(?:(?<=[A-Za-z])[:.'](?=[A-Za-z])|(?<=[0-9])[,;.'](?=[0-9]))\w+)*", re.ASCII)
_PIECE = re.compile(r"[^ \t\n\r\v\f]+")


_EXTRA = "dclm"


def check_ready() -> None:
    """Say what to install, if `uniseg` is missing. Texts in ASCII would not need it, but others may come."""
    check_installed("uniseg", extra=_EXTRA)


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
    return cast("list[str]", list(require("uniseg.wordbreak", extra=_EXTRA).words(piece)))


def _begun_well(words: list[str]) -> list[str]:
    return [word for word in words if word[0].isalnum()]


@dataclass(frozen=True)
class NGrams:
    """The n-grams of a text, at every place one begins; different ones are numbered."""

    kinds: Longs  # [N] the number of the n-gram at each place
    chars: Longs  # [N] its characters, blanks apart
    firsts: Longs  # [K] where each n-gram occurs first
    counts: Longs  # [K] how often it occurs

    @property
    def is_repeated(self) -> NDArray[np.bool_]:
        """bool[N]: whether the n-gram at a place occurs more than once."""
        is_repeated: NDArray[np.bool_] = self.counts[self.kinds] > 1
        return is_repeated

    @property
    def most_frequent(self) -> Longs:
        """The numbers of the most frequent n-grams; empty without n-grams."""
        return np.flatnonzero(self.counts == self.counts.max(initial=0))


class WordNGrams:
    """Two n-grams are equal if their first n - 1 words are and their last words are: sorted pairs of numbers say which.

    So words are only numbered, and time grows with how many there are, whatever n is.
    """

    def __init__(self, words: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        self._words = np.fromiter((numbers.setdefault(word, len(numbers)) for word in words), np.int64, len(words))
        self._ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths_of(words))])
        self._known = {1: self._numbered(self._words, 1)}

    @staticmethod
    def lengths_of(words: Sequence[str]) -> Longs:
        """int64[words]: characters."""
        return np.fromiter(map(len, words), np.int64, len(words))

    def of(self, n: int) -> NGrams:
        """Return the n-grams; shorter ones are needed on the way, and kept."""
        if n not in self._known:
            before = self.of(n - 1).kinds[:-1]
            pairs = before * (int(self._words.max(initial=0)) + 1) + self._words[n - 1 :][: len(before)]
            self._known[n] = self._numbered(pairs, n)
        return self._known[n]

    def _numbered(self, keys: Longs, n: int) -> NGrams:
        _, firsts, kinds, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        chars = self._ends[n:] - self._ends[:-n] if len(keys) else np.zeros(0, np.int64)
        return NGrams(kinds.astype(np.int64), chars, firsts.astype(np.int64), counts.astype(np.int64))
