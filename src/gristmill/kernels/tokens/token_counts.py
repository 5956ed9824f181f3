"""What rules count on the tokens of a text besides n-grams: sentences, and which of some words occur.

A sentence ends at a token that is an end mark; the next one begins at the next token that is neither an end mark nor
punctuation; white space that is a token counts. Tokens are given as `tokenize` writes them.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import Bytes
from gristmill.kernels.tokens.affixes import find_value, hash_span
from gristmill.kernels.tokens.characters import Classes
from gristmill.kernels.tokens.layout import CLASS_BLOCKS, LONGEST_LENGTH, TABLE_HEAD
from gristmill.kernels.tokens.lexicon import ENDS_SENTENCE, IS_PUNCTUATION, Words, describe
from gristmill.kernels.tokens.rejoining import SPACE
from gristmill.kernels.tokens.sizes import TOKENS

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


@sized(
    **TOKENS,
    gaps=lambda offsets, documents: offsets[documents],
    classes=lambda: CLASS_BLOCKS,
    counts=lambda documents: documents,
)
def count_sentences(
    solid: Bytes,
    firsts: Longs,
    places: Ints,
    gaps: Bytes,
    offsets: Longs,
    documents: int,
    classes: Classes,
    counts: Longs,
) -> None:
    """Count sentences. A text without tokens counts as one sentence.

    counts  [D]
    """
    for d in range(documents):
        base, last = firsts[d], offsets[d + 1] - 1
        counts[d] = 1
        ended = False
        for k in range(offsets[d], last + 1):
            if ended and gaps[k] == SPACE:
                counts[d] += 1
                ended = False
            if k == last:
                break
            flags, _ = describe(solid, base + np.int64(places[k]), base + np.int64(places[k + 1]), classes)
            if flags & ENDS_SENTENCE:
                ended = True
            elif ended and not flags & IS_PUNCTUATION:
                counts[d] += 1
                ended = False


@sized(
    **TOKENS,
    lengths=lambda: 256,
    listed=lambda: TABLE_HEAD,
    seen=lambda words: words,
    counts=lambda documents: documents,
)
def count_listed(
    solid: Bytes,
    firsts: Longs,
    places: Ints,
    offsets: Longs,
    documents: int,
    lengths: Words,
    listed: Words,
    words: int,
    seen: Longs,
    counts: Longs,
) -> None:
    """Count the different words of a list that occur.

    lengths  [256]    for each first byte, the lengths of words that begin with it, one bit each; the highest one
                      stands for all that are longer
    listed   [...]    a hash table as those of `english_tables`: by the hash of a word, its number
    seen     [words]  zeros
    counts   [D]
    """
    for d in range(documents):
        base = firsts[d]
        counts[d] = 0
        for k in range(offsets[d], offsets[d + 1] - 1):
            low, high = base + np.int64(places[k]), base + np.int64(places[k + 1])
            if lengths[solid[low]] >> np.uint64(min(high - low, LONGEST_LENGTH)) & np.uint64(1):
                word = find_value(listed, 0, hash_span(solid, low, high))
                if word >= 0 and seen[word] != d + 1:
                    seen[word] = d + 1
                    counts[d] += 1
                    if counts[d] == words:
                        break
