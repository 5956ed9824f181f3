"""What rule sets count on tokens, for a whole column; the definitions are those of the rule sets."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.lexicon_layout import records
from gristmill.kernels.tokens.token_hash import hash_bytes
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.rules.tokenizer import Tokens

_NGRAM_SCRATCH = 14  # as in kernels/tokens/ngrams.py, which may only be imported to be compiled
_top_ngrams = CompiledKernel("tokens.ngrams", "top_ngrams")
_duplicate_ngrams = CompiledKernel("tokens.ngrams", "duplicate_ngrams")
_count_sentences = CompiledKernel("tokens.token_counts", "count_sentences")
_count_listed = CompiledKernel("tokens.token_counts", "count_listed")

Counts = NDArray[np.int64]


def top_ngram_chars(tokens: Tokens, sizes: Sequence[int], wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, len(sizes)]: count times length of the most frequent n-gram, joined with blanks.

    Of several most frequent n-grams the one seen first counts, as in `Counter.most_common`. 0 without n-grams and where
    not wanted. Sizes are in rising order.
    """
    counts = np.zeros((len(tokens), len(sizes)), np.int64)
    if wanted.any():
        where = (tokens.offsets, tokens.ids, len(tokens), tokens.lexicon, wanted.view(np.uint8))
        _top_ngrams(*where, np.array(sizes, np.int64), len(sizes), *_scratch(tokens, wanted), counts)
    return counts


def duplicate_ngram_chars(tokens: Tokens, sizes: Sequence[int], wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, len(sizes)]: characters in n-grams that occurred before; 0 where not wanted.

    From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token. N-grams
    are compared as their tokens written together without blanks. Sizes are in rising order.
    """
    counts = np.zeros((len(tokens), len(sizes)), np.int64)
    if wanted.any():
        longest = int((tokens.texts.stops - tokens.texts.starts)[wanted].max())
        _duplicate_ngrams(
            *(tokens.texts.data, tokens.texts.starts, tokens.offsets, tokens.ids, tokens.places, len(tokens)),
            *(tokens.lexicon, wanted.view(np.uint8), np.array(sizes, np.int64), len(sizes)),
            *(*_scratch(tokens, wanted), np.empty(longest + 8, np.uint8), counts),
        )
    return counts


def _scratch(tokens: Tokens, wanted: NDArray[np.bool_]) -> tuple[Counts, int]:
    room = int(np.diff(tokens.offsets)[wanted].max()) + 8
    return np.empty(_NGRAM_SCRATCH * room, np.int64), room


def count_sentences(tokens: Tokens) -> Counts:
    """Return int64[D]; white space must be among the tokens. A text without tokens counts as one sentence."""
    counts = np.zeros(len(tokens), np.int64)
    _count_sentences(tokens.offsets, tokens.ids, len(tokens), tokens.lexicon, counts)
    return counts


def count_different(tokens: Tokens, words: Sequence[str]) -> Counts:
    """Return int64[D]: how many of the words occur as tokens."""
    listed = np.array(sorted({hash_bytes(word.encode()) for word in words if word}), np.uint64)
    counts = np.zeros(len(tokens), np.int64)
    if len(listed):
        hashes = np.ascontiguousarray(records(tokens.lexicon)[:, 0])
        places = np.minimum(np.searchsorted(listed, hashes), len(listed) - 1).astype(np.int32)
        places = np.where(listed[places] == hashes, places + 1, 0).astype(np.int32)
        seen = np.zeros(len(listed) + 1, np.int64)
        _count_listed(tokens.offsets, tokens.ids, len(tokens), places, seen, counts)
    return counts
