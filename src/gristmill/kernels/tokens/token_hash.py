"""Hashes of tokens, in plain Python: compiled code has the same, and a test compares the two.

A table of them is two arrays, keys and values; a key of 0 is an empty place.
"""

import numpy as np
from numpy.typing import NDArray

BASE = 0x9E3779B97F4A7C15
MODULUS = 2**64


def keys_of(text: bytes) -> tuple[int, int]:
    """Two numbers that, with the length, tell strings of up to 16 bytes apart, and longer ones except by chance."""
    first, last = int.from_bytes(text[:8], "little"), int.from_bytes(text[-8:], "little")
    if len(text) <= 8:
        return first, 0
    if len(text) <= 16:
        return first, last
    return _hash_long(text), _mix(first * BASE % MODULUS ^ last)


def hash_bytes(text: bytes) -> int:
    """The hash of a string; never 0, which marks an empty slot."""
    one, other = keys_of(text)
    return _mix((one * BASE + len(text)) % MODULUS ^ other) or 1


def _hash_long(text: bytes) -> int:
    """What `kernels.text.words_of_bytes.hash_bytes` returns."""
    one, other, at = len(text), BASE, 0
    while at + 16 <= len(text):
        one = (one ^ int.from_bytes(text[at : at + 8], "little")) * BASE % MODULUS
        other = (other ^ int.from_bytes(text[at + 8 : at + 16], "little")) * BASE % MODULUS
        one, other, at = one ^ one >> 32, other ^ other >> 32, at + 16
    for rest in range(at, len(text), 8):
        one = _mix(one ^ int.from_bytes(text[rest : rest + 8], "little"))
    return _mix(one ^ _mix(other))


def _mix(value: int) -> int:
    value = (value ^ value >> 32) * BASE % MODULUS
    return value ^ value >> 29


def extend_pattern(key: int, token: int) -> int:
    """The key of a sequence of tokens and one more."""
    mixed = (key ^ token) * 0xFF51AFD7ED558CCD % MODULUS
    return (mixed ^ (mixed >> 33)) or 1


def hash_table(entries: dict[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return keys and values, a fourth to an eighth of the places taken; a key is looked for from its high half on."""
    size = 1 << (4 * len(entries)).bit_length()
    keys, values = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    for key, value in entries.items():
        slot = key >> 32 & (size - 1)
        while keys[slot]:
            slot = (slot + 1) & (size - 1)
        keys[slot], values[slot] = key, value
    return keys, values
