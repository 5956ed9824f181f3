"""`count_sentences`: how many sentences the tokens of a text make, by marks alone.

A sentence ends at a token that is an end mark; the next one begins at the next token that is neither an end mark nor
punctuation, white space between tokens included.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.c4_lines import CleanLines
from gristmill.kernels.tokens.jit import jit
from gristmill.kernels.tokens.tokenize import ENDS_SENTENCE, IS_PUNCTUATION, Tokens, tokenize


def count_sentences(tokens: Tokens) -> NDArray[np.int64]:
    """Return int64[D]; `tokens` must hold white space. A text without tokens counts as one sentence."""
    return _count(tokens.offsets, tokens.flags)


def count_sentences_of_lines(lines: CleanLines, wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return int64[D]: the sentences of all lines of a text, each line for itself; 0 where not wanted."""
    chosen = np.repeat(wanted, np.diff(lines.first))
    lengths = np.diff(lines.offsets)
    data = lines.data[np.repeat(chosen, lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
    sentences = np.zeros(len(chosen) + 1, np.int64)
    sentences[1:][chosen] = count_sentences(tokenize(data, offsets, with_space=True))
    total = np.cumsum(sentences)
    counts: NDArray[np.int64] = total[lines.first[1:]] - total[lines.first[:-1]]
    return counts


@jit
def _count(offsets: NDArray[np.int64], flags: NDArray[np.uint8]) -> NDArray[np.int64]:
    counts = np.ones(len(offsets) - 1, np.int64)
    for text in range(len(offsets) - 1):
        ended = False
        for token in range(offsets[text], offsets[text + 1]):
            if flags[token] & ENDS_SENTENCE:
                ended = True
            elif ended and not flags[token] & IS_PUNCTUATION:
                counts[text] += 1
                ended = False
    return counts
