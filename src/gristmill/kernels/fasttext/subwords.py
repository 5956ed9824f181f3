"""A text to the scores of a fastText classifier that knows parts of words, as models of languages do.

Words are cut as fastText cuts them: at ASCII white space and NUL, bytes as they are. A text is the sum of the rows of
its known words and of those parts of its words, a few characters each, that were kept when the model was made small.
Sums are made in fastText's order, in float32, so they are equal to the last bit.

Parts are numbered by a hash, and the numbers of those that were kept are bits in a map that fits in a
processor's cache: fastText looks up each part in a hash table, mostly in vain, and waits for memory each time.

Compiled by numba.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import sized
from gristmill.kernels.text.words_of_bytes import count_ones

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

_START_32 = np.uint32(2166136261)  # FNV-1a, by which fastText numbers parts of words
_FACTOR_32 = np.uint32(16777619)
_START_64 = np.uint64(0xCBF29CE484222325)  # FNV-1a again, by which words are told apart here
_FACTOR_64 = np.uint64(0x100000001B3)
_OPENS, _CLOSES = 60, 62  # "<" and ">"


@inline
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@inline
def _is_label(data: Bytes, start: int, stop: int) -> bool:
    """Whether a word begins "__label__", which is not text to fastText."""
    if stop - start < 9 or data[start] != 95 or data[start + 1] != 95 or data[start + 7] != 95 or data[start + 8] != 95:
        return False
    at = start + 2
    return data[at] == 108 and data[at + 1] == 97 and data[at + 2] == 98 and data[at + 3] == 101 and data[at + 4] == 108


@inline
def _row_of_word(
    data: Bytes, start: int, stop: int, keys: NDArray[np.uint64], rows: NDArray[np.int32], slots: int
) -> int:
    """Return the row of a word, -1 if it is not known."""
    identity = _START_64
    for at in range(start, stop):
        identity = (identity ^ np.uint64(data[at])) * _FACTOR_64
    identity ^= identity >> np.uint64(32)
    slot = identity & np.uint64(slots - 1)
    while rows[slot] >= 0:
        if keys[slot] == identity:
            return np.int64(rows[slot])
        slot = (slot + np.uint64(1)) & np.uint64(slots - 1)
    return -1


@inline
def _in_brackets(data: Bytes, start: int, stop: int, word: Bytes) -> int:
    """Write a word between "<" and ">", as fastText numbers its parts; return how long that is."""
    word[0] = _OPENS
    for place in range(start, stop):
        word[1 + place - start] = data[place]
    word[1 + stop - start] = _CLOSES
    return stop - start + 2


@inline
def _add(inputs: Floats, row: int, dim: int, hidden: Floats) -> int:
    """Add a row; return 1, the number of rows added."""
    for column in range(dim):
        hidden[column] += inputs[row * dim + column]
    return 1


@inline
def _multiply(outputs: Floats, num_outputs: int, dim: int, hidden: Floats, share: np.float32, scores: Floats) -> None:
    """Write each row of the output matrix times the average."""
    for column in range(dim):
        hidden[column] *= share
    for output in range(num_outputs):
        total = np.float32(0)
        for column in range(dim):
            total += outputs[output * dim + column] * hidden[column]
        scores[output] = total


@inline
def _add_parts(
    word: Bytes,
    size: int,
    shortest: int,
    longest: int,
    buckets: int,
    kept: NDArray[np.uint64],
    kept_before: NDArray[np.int32],
    words: int,
    inputs: Floats,
    dim: int,
    hidden: Floats,
) -> int:
    """Add the rows of a word's parts; return how many there were."""
    count = 0
    for first in range(size):
        if word[first] & 0xC0 == 0x80:  # in the middle of a character
            continue
        number = _START_32
        at, length = first, 0
        while at < size and length < longest:
            # fastText treats bytes as signed: those above 127 set all bits of the word they are combined with.
            number = np.uint32((number ^ np.uint32(np.int32(np.int8(word[at])))) * _FACTOR_32)
            at += 1
            while at < size and word[at] & 0xC0 == 0x80:
                number = np.uint32((number ^ np.uint32(np.int32(np.int8(word[at])))) * _FACTOR_32)
                at += 1
            length += 1
            if length < shortest or (length == 1 and (first == 0 or at == size)):
                continue
            bucket = np.int64(number) % buckets
            bits, bit = kept[bucket >> 6], np.uint64(1) << np.uint64(bucket & 63)
            if bits & bit:
                row = words + kept_before[bucket >> 6] + count_ones(bits & (bit - np.uint64(1)))
                count += _add(inputs, row, dim, hidden)
    return count


@sized(
    data=lambda size: size,
    keys=lambda slots: slots,
    rows=lambda slots: slots,
    kept=lambda buckets: (buckets + 63) // 64,
    kept_before=lambda buckets: (buckets + 63) // 64,
    inputs=lambda num_rows, dim: num_rows * dim,
    outputs=lambda num_outputs, dim: num_outputs * dim,
    word=lambda size: size + 2,
    hidden=lambda dim: dim,
    scores=lambda num_outputs: num_outputs,
)
def score_text(
    data: Bytes,
    size: int,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    slots: int,
    words: int,
    end_row: int,
    shortest: int,
    longest: int,
    kept: NDArray[np.uint64],
    kept_before: NDArray[np.int32],
    buckets: int,
    inputs: Floats,
    num_rows: int,
    dim: int,
    outputs: Floats,
    num_outputs: int,
    word: Bytes,
    hidden: Floats,
    scores: Floats,
) -> int:
    """Write what each row of the output matrix makes of a text; return how many rows the text has.

    keys, rows         [slots]              known words by their 64-bit hashes, and -1 in a slot without one
    kept, kept_before  [buckets / 64]       a bit for each part that was kept, and how many were kept before these 64
    inputs             [num_rows * dim]     of the words, then of the parts in the order of their numbers
    outputs            [num_outputs * dim]
    word, hidden       scratch
    """
    for column in range(dim):
        hidden[column] = np.float32(0)
    count = 0
    at = 0
    ended = False
    while at < size and not ended:
        while at < size and _is_space(data[at]):
            at += 1
        start = at
        while at < size and not _is_space(data[at]):
            at += 1
        if at == start or _is_label(data, start, at):
            continue
        row = _row_of_word(data, start, at, keys, rows, slots)
        ended = row == end_row and row >= 0  # "</s>": fastText stops reading there
        if not ended:
            if row >= 0:
                count += _add(inputs, row, dim, hidden)
            length = _in_brackets(data, start, at, word)
            count += _add_parts(word, length, shortest, longest, buckets, kept, kept_before, words, inputs, dim, hidden)
    if end_row >= 0:
        count += _add(inputs, end_row, dim, hidden)
    if count:
        _multiply(outputs, num_outputs, dim, hidden, np.float32(1.0 / count), scores)
    return count
