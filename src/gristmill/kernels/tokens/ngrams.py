"""Repeated n-grams of tokens, as datatrove's Gopher repetition rules count them, exactly where it matters.

To find the most frequent n-gram, tokens are numbered, and n-grams counted as in `kernels.text.ngrams`, but only in
texts where one could be above its limit. Repeated n-grams are in `repeats`. Tokens are given as `tokenize` writes them.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import NGRAM_SCRATCH
from gristmill.kernels.text.ngrams import (
    CHARS,
    KEY,
    START,
    STOP,
    make_keys,
    number_ngrams,
    number_words,
    repeated_ngrams,
    repeated_words,
    top_ngram,
)
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import (
    Bytes,
    load8,
    low_bytes,
)
from gristmill.kernels.tokens.layout import BUCKET_BITS, BUCKETS
from gristmill.kernels.tokens.sizes import TOKENS, room_for_tokens

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_PAIR = 2
_MARGIN = 1 - 1e-9  # for rounding in a bound


@inline
def _make_prefixes(solid: Bytes, base: int, places: Ints, first: int, count: int, scratch: Longs, room: int) -> None:
    """Note a hash of each token's first eight bytes: tokens with different hashes differ, others may differ too."""
    for i in range(count):
        at = base + np.int64(places[first + i])
        size = base + np.int64(places[first + i + 1]) - at
        key = low_bytes(load8(solid, at), min(size, 8)) * _MULTIPLIER
        scratch[KEY * room + i] = np.int64(key ^ key >> np.uint64(32))


@inline
def _most_bytes(places: Ints, first: int, count: int, n: int, buckets: Ints, scratch: Longs, room: int) -> int:
    """No n-gram, taken as often as it occurs and with a blank after each token, has more bytes than this.

    N-grams are told apart by a hash: where two share a bucket, the bound is less sharp.
    """
    for bucket in range(BUCKETS):
        buckets[bucket] = 0
    for i in range(count - n + 1):
        key = np.uint64(0)
        for k in range(i, i + n):
            key = key * np.uint64(3) ^ np.uint64(scratch[KEY * room + k])
        bucket = np.int64(key * _MULTIPLIER >> np.uint64(64 - BUCKET_BITS))
        buckets[bucket] += places[first + i + n] - places[first + i] + n
    most = 0
    for bucket in range(BUCKETS):
        most = max(most, np.int64(buckets[bucket]))
    return most


@inline
def _may_be_above(
    places: Ints,
    first: int,
    count: int,
    chars: int,
    sizes: Longs,
    limits: Floats,
    num_sizes: int,
    buckets: Ints,
    scratch: Longs,
    room: int,
) -> bool:
    """Whether an n-gram can have more than its share of the text. Most often pairs say that none can."""
    most = _most_bytes(places, first, count, _PAIR, buckets, scratch, room)
    for column in range(num_sizes):
        n, bound = sizes[column], limits[column] * chars * _MARGIN
        # An n-gram is covered by pairs of tokens, two of which overlap if n is odd.
        if bound and (n < _PAIR or (n + 1) // _PAIR * most > bound):
            if n <= _PAIR or _most_bytes(places, first, count, n, buckets, scratch, room) > bound:
                return True
    return False


@sized(
    **TOKENS,
    wanted=lambda documents: documents,
    chars=lambda documents: documents,
    sizes=lambda num_sizes: num_sizes,
    limits=lambda num_sizes: num_sizes,
    buckets=lambda: BUCKETS,
    scratch=lambda room, wanted, offsets, documents: (
        NGRAM_SCRATCH * max(room, room_for_tokens(wanted, offsets, documents))
    ),
    counts=lambda documents, num_sizes: documents * num_sizes,
)
def top_ngrams(
    solid: Bytes,
    firsts: Longs,
    places: Ints,
    offsets: Longs,
    documents: int,
    wanted: Bytes,
    chars: Longs,
    sizes: Longs,
    limits: Floats,
    num_sizes: int,
    buckets: Ints,
    scratch: Longs,
    room: int,
    counts: Longs,
) -> None:
    """Count times length, joined with blanks, of the most frequent n-gram; of several, of the one seen first.

    wanted   [D]             1 for the texts that are to be measured
    chars    [D]             characters of the texts
    sizes    [num_sizes]     n, in rising order
    limits   [num_sizes]     share of characters that is of interest, 0 if none is
    buckets  [BUCKETS]
    scratch  [NGRAM_SCRATCH * room]  room for 8 more tokens than the longest text has
    counts   [D, num_sizes]  characters; 0 without n-grams, and where none can be above its limit
    """
    for d in range(documents):
        first, count = offsets[d], offsets[d + 1] - offsets[d] - 1
        if not wanted[d] or count == 0:
            continue
        _make_prefixes(solid, firsts[d], places, first, count, scratch, room)
        if not _may_be_above(places, first, count, chars[d], sizes, limits, num_sizes, buckets, scratch, room):
            continue
        for i in range(count):
            scratch[START * room + i] = firsts[d] + np.int64(places[first + i])
            scratch[STOP * room + i] = firsts[d] + np.int64(places[first + i + 1])
        make_keys(solid, firsts[d + 1], scratch, room, count)
        number_words(solid, scratch, room, count)
        repeated = repeated_words(scratch, room, count)
        column = 0
        for n in range(1, min(sizes[num_sizes - 1], count) + 1):
            if repeated and n > 1:
                number_ngrams(scratch, room, n, repeated)
                repeated = repeated_ngrams(scratch, room, n, repeated)
            if sizes[column] == n:
                best, times = top_ngram(scratch, room, repeated)
                size = scratch[CHARS * room + best + n] - scratch[CHARS * room + best] + n - 1
                counts[d * num_sizes + column] = times * size
                column += 1
