"""`count_words`: how many tokens a text has, how many are words, and which of a list of words are among them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.english_tables import hash_bytes
from gristmill.kernels.tokens.jit import jit
from gristmill.kernels.tokens.tokenize import HAS_LETTER, IS_SYMBOL, Tokens


class WordCounts(NamedTuple):
    """Of each text, int64[D]."""

    tokens: NDArray[np.int64]
    words: NDArray[np.int64]  # tokens that are not symbols alone
    word_chars: NDArray[np.int64]  # characters of these
    with_letter: NDArray[np.int64]  # tokens with a letter in them
    stop_words: NDArray[np.int64]  # different words of the list that occur


def count_words(tokens: Tokens, stop_words: Sequence[str]) -> WordCounts:
    """Count the words of every text."""
    listed = np.array(sorted({hash_bytes(word.encode()) for word in stop_words if word}), np.uint64)
    return WordCounts(*_count(tokens.offsets, tokens.hashes, tokens.chars, tokens.flags, listed).T)


@jit
def _count(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    chars: NDArray[np.int32],
    flags: NDArray[np.uint8],
    listed: NDArray[np.uint64],
) -> NDArray[np.int64]:
    found = np.zeros((len(offsets) - 1, 5), np.int64)
    seen = np.zeros(len(listed), np.int64)  # the last text each word was seen in, counted from 1
    for text in range(len(offsets) - 1):
        words = word_chars = letters = stops = 0
        for token in range(offsets[text], offsets[text + 1]):
            if not flags[token] & IS_SYMBOL:
                words += 1
                word_chars += chars[token]
            if flags[token] & HAS_LETTER:
                letters += 1
            place = np.searchsorted(listed, hashes[token])
            if place < len(listed) and listed[place] == hashes[token] and seen[place] != text + 1:
                seen[place] = text + 1
                stops += 1
        found[text, 0] = offsets[text + 1] - offsets[text]
        found[text, 1], found[text, 2], found[text, 3], found[text, 4] = words, word_chars, letters, stops
    return found
