"""The rules of English tokenisation as arrays for compiled code: characters, exceptions, units and cut-up exceptions.

A string is looked up by its hash: for bytes b, the sum of SALT[b[i]] * BASE**i, modulo 2**64. Strings that are put
together have a hash that can be put together from theirs, which n-grams of tokens need.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.code_points import class_table
from gristmill.kernels.tokens.english import exception_patterns
from gristmill.kernels.tokens.english_characters import CURRENCY, UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions

BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
SALT: NDArray[np.uint64] = np.random.default_rng(2718).integers(1, 2**64, size=256, dtype=np.uint64)
MODULUS = 2**64

IS_START, IS_WHOLE = 1, 2  # of a cut-up exception: some tokens it begins with, all of its tokens


class EnglishTables(NamedTuple):
    """classes: by code point. The others are hash tables of a power of two of slots: key 0 is an empty slot."""

    classes: NDArray[np.uint32]  # [0x110000]
    salt: NDArray[np.uint64]  # [256]
    exception_keys: NDArray[np.uint64]
    exception_slots: NDArray[np.int32]  # slot -> first of its parts
    parts: NDArray[np.int32]  # for each exception the lengths of its tokens in bytes, closed by 0
    unit_keys: NDArray[np.uint64]
    pattern_keys: NDArray[np.uint64]
    pattern_kinds: NDArray[np.uint8]


def hash_bytes(text: bytes) -> int:
    """The hash of a string; never 0, which marks an empty slot."""
    total = 0
    power = 1
    for byte in text:
        total = (total + int(SALT[byte]) * power) % MODULUS
        power = power * BASE % MODULUS
    return total or 1


def extend_pattern(key: int, token: int) -> int:
    """The key of a sequence of tokens and one more."""
    mixed = (key ^ token) * 0xFF51AFD7ED558CCD % MODULUS
    return (mixed ^ (mixed >> 33)) or 1


@cache
def english_tables() -> EnglishTables:
    """Make the tables; about 0.2 s, once in a worker."""
    cut = exceptions()
    parts: list[int] = []
    first_parts: dict[int, int] = {}
    for text, tokens in cut.items():
        first_parts[hash_bytes(text.encode())] = len(parts)
        parts += [*(len(token.encode()) for token in tokens), 0]
    exception_keys, exception_slots = _hash_table(first_parts)
    unit_keys, _ = _hash_table({hash_bytes(unit.encode()): 0 for unit in (*UNITS, *CURRENCY, "+")})
    pattern_keys, pattern_kinds = _hash_table(_pattern_kinds())
    return EnglishTables(
        class_table(),
        SALT,
        exception_keys,
        exception_slots,
        np.array(parts, np.int32),
        unit_keys,
        pattern_keys,
        pattern_kinds.astype(np.uint8),
    )


def _pattern_kinds() -> dict[int, int]:
    kinds: dict[int, int] = {}
    for pattern in exception_patterns():
        key = 0
        for n, token in enumerate(pattern, start=1):
            key = extend_pattern(key, hash_bytes(token.encode()))
            kinds[key] = kinds.get(key, 0) | (IS_WHOLE if n == len(pattern) else IS_START)
    return kinds


def _hash_table(entries: dict[int, int]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    size = 1 << (4 * len(entries)).bit_length()
    keys, values = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for key, value in entries.items():
        slot = key >> 32 & (size - 1)
        while keys[slot]:
            slot = (slot + 1) & (size - 1)
        keys[slot], values[slot] = key, value
    return keys, values
