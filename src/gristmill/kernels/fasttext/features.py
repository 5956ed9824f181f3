"""Texts to the rows of a matrix: one for each word that is known, and one for each pair of neighbouring words.

Words are cut as fastText cuts them: at ASCII white space and NUL, bytes as they are. A known word's row is its place in
the vocabulary. A pair's is a hash, after all words: with B buckets, pairs share rows. A text ends with the word
"</s>", as fastText has it; that word inside a text is left out, because fastText would stop reading there. The mark
"__label__" is white space for the same reason: what begins with it would be a label.

Compiled by numba; D documents are data[starts[d]:stops[d]].
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, bytes_of_texts, longest_text, sized

_START_32 = np.uint32(2166136261)  # FNV-1a, by which fastText numbers words and pairs
_FACTOR_32 = np.uint32(16777619)
_START_64 = np.uint64(0xCBF29CE484222325)  # FNV-1a again, by which words are told apart here
_FACTOR_64 = np.uint64(0x100000001B3)
_PAIR = np.uint64(116049371)
_END_OF_TEXT = np.uint32(3617362777)  # what "</s>" hashes to

ROWS_MORE = 3  # a text has at most this many more rows than bytes: its end and the pair before it among them


@inline
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13) or byte == 0


@inline
def _is_mark(data: NDArray[np.uint8], at: int, end: int) -> bool:
    """Whether "__label__" begins here."""
    if end - at < 9 or data[at] != 95 or data[at + 1] != 95 or data[at + 7] != 95 or data[at + 8] != 95:
        return False
    return (
        data[at + 2] == 108
        and data[at + 3] == 97
        and data[at + 4] == 98
        and data[at + 5] == 101
        and data[at + 6] == 108
    )


@inline
def _is_end(data: NDArray[np.uint8], start: int, stop: int) -> bool:
    """Whether a word is "</s>"."""
    if stop - start != 4:
        return False
    return data[start] == 60 and data[start + 1] == 47 and data[start + 2] == 115 and data[start + 3] == 62


@inline
def _next_word(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int, np.uint32, np.uint64]:
    """Where the next word begins and ends, its 32-bit hash and its 64-bit hash; begins at `end` if there is none."""
    while at < end:
        if _is_space(data[at]):
            at += 1
        elif _is_mark(data, at, end):
            at += 9
        else:
            break
    start = at
    short, long = _START_32, _START_64
    while at < end and not _is_space(data[at]) and not (data[at] == 95 and _is_mark(data, at, end)):
        byte = data[at]
        # fastText treats bytes as signed: those above 127 set all bits of the word they are combined with.
        short = np.uint32((short ^ np.uint32(np.int32(np.int8(byte)))) * _FACTOR_32)
        long = (long ^ np.uint64(byte)) * _FACTOR_64
        at += 1
    return start, at, short, long ^ (long >> np.uint64(32))


@sized(**TEXTS, identities=bytes_of_texts, places=bytes_of_texts, lengths=bytes_of_texts)
def find_words(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    identities: NDArray[np.uint64],
    places: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> int:
    """Write the 64-bit hash, the place and the length of every word of all texts; return how many there are."""
    count = 0
    for d in range(documents):
        at, end = starts[d], stops[d]
        while at < end:
            start, at, _, identity = _next_word(data, at, end)
            if at > start and not _is_end(data, start, at):
                identities[count] = identity
                places[count] = start
                lengths[count] = at - start
                count += 1
    return count


@sized(identities=lambda words: words, keys=lambda slots: slots, rows=lambda slots: slots)
def fill_table(
    identities: NDArray[np.uint64], words: int, keys: NDArray[np.uint64], rows: NDArray[np.int32], slots: int
) -> None:
    """Enter words by their 64-bit hashes into a table of `slots`, a power of two above their number.

    rows  [slots]  the word's row; -1 in a slot without one
    """
    for slot in range(slots):
        rows[slot] = -1
    for word in range(words):
        slot = identities[word] & np.uint64(slots - 1)
        while rows[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(slots - 1)
        keys[slot] = identities[word]
        rows[slot] = word


@inline
def _pair_row(before: np.uint32, after: np.uint32, words: int, buckets: int) -> np.int32:
    """fastText's row of two neighbouring words: their hashes are signed, their sum of products is not."""
    hashed = np.uint64(np.int64(np.int32(before))) * _PAIR + np.uint64(np.int64(np.int32(after)))
    return np.int32(words + np.int64(hashed % np.uint64(buckets)))


@inline
def rows_of_text(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    slots: int,
    words: int,
    buckets: int,
    end_row: int,
    out: NDArray[np.int32],
    first: int,
) -> int:
    """Write the rows of one text to out[first:]; return where they end."""
    count = first
    before, is_first = np.uint32(0), True
    at = start
    while at < end:
        begin, at, short, identity = _next_word(data, at, end)
        if at == begin or _is_end(data, begin, at):
            continue
        slot = identity & np.uint64(slots - 1)
        while rows[slot] >= 0:
            if keys[slot] == identity:
                out[count] = rows[slot]
                count += 1
                break
            slot = (slot + np.uint64(1)) & np.uint64(slots - 1)
        if not is_first:
            out[count] = _pair_row(before, short, words, buckets)
            count += 1
        before, is_first = short, False
    out[count] = end_row
    count += 1
    if not is_first:
        out[count] = _pair_row(before, _END_OF_TEXT, words, buckets)
        count += 1
    return count


@sized(
    **TEXTS,
    keys=lambda slots: slots,
    rows=lambda slots: slots,
    out=lambda starts, stops, documents: bytes_of_texts(starts, stops, documents) + ROWS_MORE * documents,
    bounds=lambda documents: documents + 1,
)
def find_rows(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    slots: int,
    words: int,
    buckets: int,
    end_row: int,
    out: NDArray[np.int32],
    bounds: NDArray[np.int64],
) -> None:
    """Write the rows of D texts end to end.

    keys, rows  the table of the vocabulary, of `words` words
    end_row     the row of "</s>"
    out         room for the rows of all texts
    bounds      [D + 1]  where the rows of each begin
    """
    bounds[0] = 0
    for d in range(documents):
        bounds[d + 1] = rows_of_text(
            data, starts[d], stops[d], keys, rows, slots, words, buckets, end_row, out, bounds[d]
        )


@sized(
    **TEXTS,
    keys=lambda slots: slots,
    rows=lambda slots: slots,
    inputs=lambda words, buckets, dim: (words + buckets) * dim,
    weights=lambda dim: dim,
    own=lambda starts, stops, documents: longest_text(starts, stops, documents) + ROWS_MORE,
    hidden=lambda dim: dim,
    margins=lambda documents: documents,
)
def score_texts(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    keys: NDArray[np.uint64],
    rows: NDArray[np.int32],
    slots: int,
    words: int,
    buckets: int,
    end_row: int,
    inputs: NDArray[np.float32],
    weights: NDArray[np.float64],
    dim: int,
    own: NDArray[np.int32],
    hidden: NDArray[np.float32],
    margins: NDArray[np.float64],
) -> None:
    """Write the log odds of each text; not a number for one without words.

    inputs   [words + buckets, dim]
    weights  [dim]  the output row of the positive class minus that of the negative one
    own      room for the rows of the longest text
    hidden   [dim]
    margins  [D]
    """
    for d in range(documents):
        count = rows_of_text(data, starts[d], stops[d], keys, rows, slots, words, buckets, end_row, own, 0)
        for k in range(dim):
            hidden[k] = 0
        for i in range(count):
            row = np.int64(own[i]) * dim
            for k in range(dim):
                hidden[k] += inputs[row + k]
        margin = 0.0
        for k in range(dim):
            margin += np.float64(hidden[k]) * weights[k]
        margins[d] = margin / count if count > 1 else np.nan
