"""Distinct pieces of a text, exactly: equal hashes are followed by a comparison of the bytes."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import TABLE_SLOTS
from gristmill.kernels.text.words_of_bytes import Bytes, count_characters_in, equal_bytes, hash_bytes

SCRATCH_PER_PIECE = 3 + TABLE_SLOTS  # start, stop, hash, and the table


@inline
def table_bits(entries: int) -> int:
    """Return b such that a table of 2**b slots is between a quarter and half full with that many entries."""
    bits = 3
    while (1 << bits) < 2 * entries:
        bits += 1
    return bits


@inline
def count_distinct(data: Bytes, pieces: int, scratch: NDArray[np.int64]) -> tuple[int, int, int]:
    """Return the number of distinct pieces, their characters, and the characters of all pieces.

    Piece k is the bytes scratch[3 * k] .. scratch[3 * k + 1]; the third place is for its hash, the table comes after.
    """
    bits = table_bits(pieces)
    table = 3 * pieces
    for slot in range(table, table + (1 << bits)):
        scratch[slot] = 0
    distinct = distinct_chars = all_chars = 0
    is_ascii = pieces == 0 or not _has_long_characters(data, scratch[0], scratch[3 * pieces - 2])
    for k in range(pieces):
        start, stop = scratch[3 * k], scratch[3 * k + 1]
        key = hash_bytes(data, start, stop)
        scratch[3 * k + 2] = np.int64(key)
        slot = np.int64(key >> np.uint64(64 - bits))
        size = stop - start if is_ascii else count_characters_in(data, start, stop)
        all_chars += size
        while True:
            other = scratch[table + slot] - 1
            if other < 0:
                scratch[table + slot] = k + 1
                distinct += 1
                distinct_chars += size
                break
            if (
                scratch[3 * other + 2] == scratch[3 * k + 2]
                and stop - start == scratch[3 * other + 1] - scratch[3 * other]
            ):
                if equal_bytes(data, start, scratch[3 * other], stop - start):
                    break
            slot = (slot + 1) & ((1 << bits) - 1)
    return distinct, distinct_chars, all_chars


@inline
def _has_long_characters(data: Bytes, start: int, stop: int) -> bool:
    highs = np.uint8(0)
    for i in range(start, stop):
        highs |= data[i]
    return highs >= 0x80
