"""`WordNGrams`: which n-grams of a list of words are the same, for as many n as are asked for. No rule lives here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]


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
    """Two n-grams are equal if their first n - 1 words are and the last ones are: pairs of numbers, sorted, say which.

    So nothing is made of words but their numbers, and time grows with their number whatever n.
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
