"""What rule sets count on tokens, for a whole column; the definitions are those of the rule sets."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.layout import BUCKETS, LONGEST_LENGTH, TABLE_HEAD, TOKEN_SCRATCH
from gristmill.kernels.tokens.token_hash import hash_bytes, hash_table
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.text.rules.tokenizer import Tokens, character_classes

_top_ngrams = CompiledKernel("tokens.ngrams", "top_ngrams")
_duplicate_ngrams = CompiledKernel("tokens.repeats", "duplicate_ngrams")
_count_sentences = CompiledKernel("tokens.token_counts", "count_sentences")
_count_listed = CompiledKernel("tokens.token_counts", "count_listed")

Counts = NDArray[np.int64]
NGramLimits = Sequence[tuple[int, float | None]]


def top_ngram_chars(tokens: Tokens, limits: NGramLimits, chars: Counts, wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, sizes]: count times length of the most frequent n-gram, joined with blanks; sizes rise.

    Of several most frequent n-grams the one seen first counts, as in `Counter.most_common`. 0 without n-grams, where
    not wanted, and where no n-gram can have more than its limit, a share of `chars`.
    """
    return _count_ngrams(_top_ngrams, tokens, limits, chars, wanted, np.empty(BUCKETS, np.int32))


def duplicate_ngram_chars(tokens: Tokens, limits: NGramLimits, chars: Counts, wanted: NDArray[np.bool_]) -> Counts:
    """Return int64[D, sizes]: characters in n-grams that occurred before; sizes rise.

    From left to right: an n-gram that was seen is counted and jumped over, else the scan moves by one token. N-grams
    are compared as their tokens written together without blanks. 0 where not wanted, where they cannot have more than
    their limit, and behind one that has, if the limits are given with sizes that rise.
    """
    given = [n for n, _ in limits]
    return _count_ngrams(_duplicate_ngrams, tokens, limits, chars, wanted, int(given == sorted(set(given))))


def _count_ngrams(
    kernel: CompiledKernel,
    tokens: Tokens,
    limits: NGramLimits,
    chars: Counts,
    wanted: NDArray[np.bool_],
    option: NDArray[np.int32] | int,
) -> Counts:
    lowest = _lowest(limits)
    counts = np.zeros((len(tokens), len(lowest)), np.int64)
    if wanted.any() and lowest:
        room = int(tokens.num_tokens[wanted].max()) + 8
        kernel(
            *(tokens.solid, tokens.firsts, tokens.places, tokens.offsets, len(tokens), wanted.view(np.uint8), chars),
            *(np.array(list(lowest), np.int64), np.array(list(lowest.values()), np.float64), len(lowest)),
            *(option, np.empty(TOKEN_SCRATCH * room, np.int64), room, counts),
        )
    return counts


def _lowest(limits: NGramLimits) -> dict[int, float]:
    """The lowest limit for each size, in rising order of sizes; 0 where there is none."""
    sizes = sorted({n for n, _ in limits})
    return {n: min((limit for size, limit in limits if size == n and limit), default=0.0) for n in sizes}


def count_sentences(tokens: Tokens) -> Counts:
    """Return int64[D]. A text without tokens counts as one sentence."""
    counts = np.zeros(len(tokens), np.int64)
    where = (tokens.solid, tokens.firsts, tokens.places, tokens.gaps, tokens.offsets, len(tokens))
    _count_sentences(*where, character_classes(), counts)
    return counts


def count_different(tokens: Tokens, words: Sequence[str]) -> Counts:
    """Return int64[D]: how many of the words occur as tokens."""
    counts = np.zeros(len(tokens), np.int64)
    listed = tuple(sorted({word for word in words if word}))
    if listed:
        where = (tokens.solid, tokens.firsts, tokens.places, tokens.offsets, len(tokens))
        _count_listed(*where, *_word_tables(listed), len(listed), np.zeros(len(listed), np.int64), counts)
    return counts


@lru_cache(maxsize=16)
def _word_tables(words: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Lengths by first byte, and the words by their hash, as kernels/tokens/token_counts.py has it."""
    lengths = [0] * 256
    for word in words:
        lengths[word.encode()[0]] |= 1 << min(len(word.encode()), LONGEST_LENGTH)
    keys, values = hash_table({hash_bytes(word.encode()): number for number, word in enumerate(words)})
    head = np.array([len(keys) - 1, TABLE_HEAD, TABLE_HEAD + len(keys)], np.uint64)
    return np.array(lengths, np.uint64), np.concatenate([head, keys, values])
