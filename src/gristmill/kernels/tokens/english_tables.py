"""The rules of English tokenisation as arrays for compiled code: characters, exceptions, units and cut-up exceptions.

A string is looked up by its hash, see `token_hash`. All hash tables lie in one array of words, which begins with three
numbers for each: its size less one, and where its keys and its values begin. A key of 0 is an empty place.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens.code_points import class_table
from gristmill.kernels.tokens.english import exception_patterns
from gristmill.kernels.tokens.english_characters import CURRENCY, UNITS
from gristmill.kernels.tokens.english_exceptions import exceptions
from gristmill.kernels.tokens.token_hash import extend_pattern, hash_bytes, hash_table

# Places in the words: three numbers for each table, and where the parts of exceptions begin.
EXCEPTIONS_TABLE, UNITS_TABLE, PATTERNS_TABLE, TOKENS_TABLE, PARTS = 0, 3, 6, 9, 12
_HEAD = 13

IS_START, IS_WHOLE = 1, 2  # of a cut-up exception: some tokens it begins with, all of its tokens
STARTS, GOES_ON, IS_ALONE = 32, 64, 128  # of a token: it starts a cut-up exception, is in one further on, is all of one


class EnglishTables(NamedTuple):
    """What the compiled rules look things up in."""

    classes: NDArray[np.uint32]  # of characters, see `code_points.class_table`
    words: NDArray[np.uint64]  # hash tables, and for each exception the lengths of its tokens in bytes, closed by 0


def english_tables() -> EnglishTables:
    """Make the tables; it takes half a second, so keep them."""
    parts: list[int] = []
    first_parts: dict[int, int] = {}
    for text, tokens in exceptions().items():
        first_parts[hash_bytes(text.encode())] = len(parts)
        parts += [*(len(token.encode()) for token in tokens), 0]
    units = {hash_bytes(unit.encode()): 0 for unit in (*UNITS, *CURRENCY, "+")}
    words = [np.zeros(_HEAD, np.uint64)]
    for table, entries in (
        (EXCEPTIONS_TABLE, first_parts),
        (UNITS_TABLE, units),
        (PATTERNS_TABLE, _pattern_kinds()),
        (TOKENS_TABLE, _roles()),
    ):
        keys, values = hash_table(entries)
        at = sum(map(len, words))
        words[0][table : table + 3] = len(keys) - 1, at, at + len(keys)
        words += [keys, values]
    words[0][PARTS] = sum(map(len, words))
    return EnglishTables(class_table(), np.concatenate([*words, np.array(parts, np.uint64)]))


def _pattern_kinds() -> dict[int, int]:
    kinds: dict[int, int] = {}
    for pattern in exception_patterns():
        key = 0
        for n, token in enumerate(pattern, start=1):
            key = extend_pattern(key, hash_bytes(token.encode()))
            kinds[key] = kinds.get(key, 0) | (IS_WHOLE if n == len(pattern) else IS_START)
    return kinds


def _roles() -> dict[int, int]:
    """By hash, what the tokens of cut-up exceptions are in them."""
    roles: dict[int, int] = {}
    for pattern in exception_patterns():
        for place, token in enumerate(pattern):
            key = hash_bytes(token.encode())
            role = GOES_ON if place else IS_ALONE if len(pattern) == 1 else STARTS
            roles[key] = roles.get(key, 0) | role
    return roles
