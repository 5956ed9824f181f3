"""Texts to tokens and tokens to shingles, in one pass over the bytes of UTF-8.

A token is the 64-bit hash of a folded word, or a folded character. A shingle is the hash of n neighbouring tokens, by a
polynomial that rolls from one to the next (Karp, Rabin 1987): no string is made. A text of fewer than n tokens has one
shingle, of all of them, so it equals only texts of the same tokens. A text without tokens has none.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.dedup.fold_table import ALONE, IGNORED, SEPARATOR
from gristmill.kernels.dedup.fold_table import SIZE as FOLD_SIZE
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, longest_text, sized

_ALONE = np.uint64(ALONE)
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so multiplying by it loses nothing
_WORD_START = np.uint64(0xCBF29CE484222325)
_WORD_FACTOR = np.uint64(0x100000001B3)  # FNV-1a's, whose weak low bits the mixing below repairs
_SHORT = np.uint64(0xD6E8FEB86659FD93)
_SPACE = np.uint64(32)


@inline
def mix64(value: np.uint64) -> np.uint64:
    """The finaliser of splitmix64, as in `row_hash.mix`."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inline
def _code_point(data: NDArray[np.uint8], at: int) -> tuple[np.int64, int]:
    """The character that begins at a byte ≥ 0x80, and where the next one begins. Valid UTF-8 is taken for granted."""
    first = np.int64(data[at])
    if first < 0xE0:
        return ((first & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F), at + 2
    if first < 0xF0:
        code = ((first & 0x0F) << 12) | ((np.int64(data[at + 1]) & 0x3F) << 6) | (np.int64(data[at + 2]) & 0x3F)
        return code, at + 3
    high = ((first & 0x07) << 18) | ((np.int64(data[at + 1]) & 0x3F) << 12)
    return high | ((np.int64(data[at + 2]) & 0x3F) << 6) | (np.int64(data[at + 3]) & 0x3F), at + 4


@inline
def tokenize(
    data: NDArray[np.uint8], start: int, end: int, fold: NDArray[np.uint32], by_word: int, out: NDArray[np.uint64]
) -> int:
    """Write the tokens of data[start:end] to `out`, which has room for end - start; return how many there are."""
    count = 0
    word = _WORD_START
    in_word = False
    at = start
    while at < end:
        byte = data[at]
        if byte < 0x80:
            folded = np.uint64(fold[byte])
            at += 1
        else:
            code, at = _code_point(data, at)
            folded = np.uint64(fold[code]) if code < 0x10000 else np.uint64(code)
        if folded == IGNORED:
            continue
        if not by_word:
            if folded != SEPARATOR:
                out[count] = folded & ~_ALONE
                count += 1
            elif count and out[count - 1] != _SPACE:
                out[count] = _SPACE
                count += 1
            continue
        if folded == SEPARATOR or folded & _ALONE:
            if in_word:
                out[count] = mix64(word)
                count += 1
                word = _WORD_START
                in_word = False
            if folded != SEPARATOR:
                out[count] = mix64(folded)
                count += 1
            continue
        word = (word ^ folded) * _WORD_FACTOR
        in_word = True
    if in_word:
        out[count] = mix64(word)
        count += 1
    if not by_word and count and out[count - 1] == _SPACE:
        count -= 1
    return count


@inline
def shingle(tokens: NDArray[np.uint64], count: int, n: int, out: NDArray[np.uint64]) -> int:
    """Write the hash of every n neighbouring tokens to `out`; return how many there are."""
    if count == 0:
        return 0
    rolling = np.uint64(0)
    if count < n:
        for i in range(count):
            rolling = rolling * _BASE + tokens[i]
        out[0] = mix64(rolling ^ _SHORT)
        return 1
    leaving = np.uint64(1)
    for _ in range(n):
        leaving *= _BASE
    for i in range(n):
        rolling = rolling * _BASE + tokens[i]
    out[0] = mix64(rolling)
    for i in range(n, count):
        rolling = rolling * _BASE + tokens[i] - leaving * tokens[i - n]
        out[i - n + 1] = mix64(rolling)
    return count - n + 1


@inline
def hash128(tokens: NDArray[np.uint64], count: int, out: NDArray[np.uint64], at: int) -> None:
    """Write 128 bits of a sequence of tokens to out[at] and out[at + 1]: zeros if there are none."""
    low, high = np.uint64(count), _SHORT
    for i in range(count):
        low = mix64(low + tokens[i])
        high = (high ^ tokens[i]) * _BASE
        high ^= high >> np.uint64(29)
    out[at] = low if count else np.uint64(0)
    out[at + 1] = mix64(high) if count else np.uint64(0)


@sized(
    **TEXTS,
    fold=lambda: FOLD_SIZE,
    tokens=longest_text,
    hashes=lambda documents: 2 * documents,
)
def hash_tokens(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    fold: NDArray[np.uint32],
    tokens: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
) -> None:
    """Hash each text's sequence of folded words.

    tokens  room for those of the longest text
    hashes  [D, 2]  zeros for a text without words
    """
    for d in range(documents):
        count = tokenize(data, starts[d], stops[d], fold, 1, tokens)
        hash128(tokens, count, hashes, 2 * d)
