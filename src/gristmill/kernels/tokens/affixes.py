"""What may be cut off a piece of text, or found inside it: the compiled patterns of `english.english_rules`.

Every function treats bytes [low, high) of valid UTF-8 as a string of its own: nothing outside is seen. Lengths
and positions are in bytes.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline, part
from gristmill.kernels.text.words_of_bytes import Bytes, hash_bytes, load8, load_up_to_8, low_bytes, mix
from gristmill.kernels.tokens.characters import (
    Classes,
    class_at,
    class_of,
    is_digit,
    point_at,
    start_before,
    width_at,
)
from gristmill.kernels.tokens.code_points import (
    ALPHA,
    BEFORE_FULL_STOP,
    DASH,
    DECIMAL,
    FRONT,
    HOST,
    ICON,
    LOWER,
    MONEY,
    PUNCTUATION,
    QUOTE,
    UNIT_END,
    UPPER,
    WORD,
)
from gristmill.kernels.tokens.english_tables import UNITS_TABLE, EnglishTables
from gristmill.kernels.tokens.token_hash import BASE

Words = NDArray[np.uint64]

_BASE = np.uint64(BASE)
_PREFIX = FRONT | PUNCTUATION | QUOTE | ICON | MONEY
_SUFFIX = PUNCTUATION | QUOTE | ICON | DASH
_LONGEST_UNIT = 6  # characters
_LONGEST_LABEL = 64
_LONGEST_TOP_LEVEL = 63
_DIGIT_BITS = 21  # an octet is up to three digits of any script, the first lowest

# Characters by their code, as compiled code compares them.
_HASH = ord("#")
_DOLLAR = ord("$")
_APOSTROPHE = ord("'")
_STAR = ord("*")
_PLUS = ord("+")
_COMMA = ord(",")
_HYPHEN = ord("-")
_DOT = ord(".")
_SLASH = ord("/")
_COLON = ord(":")
_LESS = ord("<")
_EQUAL = ord("=")
_GREATER = ord(">")
_QUESTION_MARK = ord("?")
_AT = ord("@")
_CAPITAL_A = ord("A")
_CAPITAL_C = ord("C")
_CAPITAL_F = ord("F")
_CAPITAL_K = ord("K")
_CAPITAL_S = ord("S")
_CAPITAL_U = ord("U")
_CARET = ord("^")
_UNDERSCORE = ord("_")
_SMALL_S = ord("s")
_TILDE = ord("~")
_DEGREE = ord("\N{DEGREE SIGN}")
_EN_DASH = ord("\N{EN DASH}")
_EM_DASH = ord("\N{EM DASH}")
_DIGIT = (1 << _DIGIT_BITS) - 1


def _octet(digits: str) -> int:
    return sum(ord(digit) << (_DIGIT_BITS * place) for place, digit in enumerate(digits))


_TEN, _127, _169, _172, _192, _254, _168 = map(_octet, "10 127 169 172 192 254 168".split())


@part
def _keys_of_long(data: Bytes, start: int, end: int) -> tuple[np.uint64, np.uint64]:
    return hash_bytes(data, start, end), mix(load8(data, start) * _BASE ^ load8(data, end - 8))


@inline
def keys_of(data: Bytes, start: int, end: int, stop: int) -> tuple[np.uint64, np.uint64]:
    """As `token_hash.keys_of` has it, for bytes [start, end) of a text that stops at `stop`."""
    length = end - start
    if length <= 8:
        return low_bytes(load_up_to_8(data, start, stop), length), np.uint64(0)
    if length <= 16:
        return load8(data, start), load8(data, end - 8)
    return _keys_of_long(data, start, end)


@inline
def hash_keys(one: np.uint64, other: np.uint64, length: int) -> np.uint64:
    """The hash of a string by its keys."""
    key = mix((one * _BASE + np.uint64(length)) ^ other)
    return key if key else np.uint64(1)


@part
def hash_span(data: Bytes, low: int, high: int) -> np.uint64:
    """The hash of bytes [low, high), as `token_hash.hash_bytes` defines it."""
    one, other = keys_of(data, low, high, high)
    return hash_keys(one, other, high - low)


@part
def find_value(words: Words, table: int, key: np.uint64) -> int:
    """The value of a key in one of the hash tables, or -1."""
    mask, keys, values = np.int64(words[table]), np.int64(words[table + 1]), np.int64(words[table + 2])
    slot = np.int64(key >> np.uint64(32)) & mask
    while words[keys + slot]:
        if words[keys + slot] == key:
            return np.int64(words[values + slot])
        slot = (slot + 1) & mask
    return -1


@part
def prefix_length(data: Bytes, low: int, high: int, classes: Classes) -> int:
    """Length of the prefix to cut off, or 0."""
    first = data[low]
    if class_at(data, low, classes) & _PREFIX:
        return width_at(data, low)
    if first == _DOT:  # ..
        end = low
        while end < high and data[end] == _DOT:
            end += 1
        return end - low if end - low > 1 else 0
    if first == _PLUS:  # + that is not the sign of a number
        return 0 if low + 1 < high and is_digit(data[low + 1]) else 1
    if (first == _CAPITAL_C or first == _CAPITAL_A) and low + 1 < high and data[low + 1] == _DOLLAR:  # C$ A$
        return 2
    if first == _CAPITAL_U and low + 2 < high and data[low + 1] == _CAPITAL_S and data[low + 2] == _DOLLAR:  # US$
        return 3
    return 0


@part
def suffix_length(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """Length of the longest suffix to cut off, or 0."""
    if low >= high:
        return 0
    last = start_before(data, high)
    kinds = class_at(data, last, tables.classes)
    if kinds & UNIT_END:
        length = _unit_length(data, low, high, tables)
        if length:
            return length
    if data[last] == _DOT:
        return _full_stop_length(data, low, high, tables.classes)
    if kinds & _SUFFIX:
        return _mark_length(data, low, last, high)
    # 's and ’s
    if data[last] == _SMALL_S or data[last] == _CAPITAL_S:
        if last > low and data[last - 1] == _APOSTROPHE:
            return 2
        if last - 3 >= low and data[last - 3] == 0xE2 and data[last - 2] == 0x80 and data[last - 1] == 0x99:
            return 4
    return 0


@part
def _mark_length(data: Bytes, low: int, last: int, high: int) -> int:
    """A mark is a suffix of its own; of ellipsis characters two go together."""
    if high - last == 3 and data[last] == 0xE2 and data[last + 1] == 0x80 and data[last + 2] == 0xA6:
        if last - 3 >= low and data[last - 3] == 0xE2 and data[last - 2] == 0x80 and data[last - 1] == 0xA6:
            return 6
    return high - last


@part
def _unit_length(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """Length of the longest unit or currency that follows a digit and ends the string."""
    found = 0
    start = high
    for _ in range(_LONGEST_UNIT):
        if start <= low:
            break
        start = start_before(data, start)
        if start > low and is_digit(data[start - 1]):
            if find_value(tables.words, UNITS_TABLE, hash_span(data, start, high)) >= 0:
                found = high - start
    return found


@part
def _full_stop_length(data: Bytes, low: int, high: int, classes: Classes) -> int:
    start = high
    while start > low and data[start - 1] == _DOT:
        start -= 1
    if high - start > 1:
        return high - start
    if start == low:
        return 0
    before = start_before(data, start)
    point = point_at(data, before)
    if class_of(classes, point) & BEFORE_FULL_STOP:
        return 1
    if before == low:
        return 0
    second = point_at(data, start_before(data, before))
    if class_of(classes, point) & UPPER and class_of(classes, second) & UPPER:
        return 1
    temperature = point == _CAPITAL_F or point == _CAPITAL_C or point == _CAPITAL_K
    return 1 if second == _DEGREE and temperature else 0


@part
def infix_length(data: Bytes, low: int, at: int, high: int, before: int, classes: Classes) -> int:
    """Length of the infix that starts at `at`, or 0; `before` is what stands before it (0 at the start)."""
    point = point_at(data, at)
    if point < 0x80 and not _may_be_infix(point):
        return 0
    end = at + width_at(data, at)
    if point == 0x2026 or class_of(classes, point) & ICON:
        return end - at
    if point == _DOT and end < high and data[end] == _DOT:
        while end < high and data[end] == _DOT:
            end += 1
        return end - at
    if at == low or end >= high:
        return 0
    after = class_at(data, end, classes)
    if point == _DOT:
        return 1 if before & (LOWER | QUOTE) and after & (UPPER | QUOTE) else 0
    if point == _COMMA:
        return 1 if before & ALPHA and after & ALPHA else 0
    digit_before = is_digit(data[at - 1])
    if digit_before and (point == _PLUS or point == _HYPHEN or point == _STAR or point == _CARET):  # + - * ^
        if is_digit(data[end]) or data[end] == _HYPHEN:
            return 1
    if not (before & ALPHA or digit_before):
        return 0
    if point == _COLON or point == _LESS or point == _EQUAL or point == _GREATER or point == _SLASH:  # : < = > /
        return 1 if after & ALPHA else 0
    return _hyphen_length(data, at, high, point, classes)


@part
def _may_be_infix(point: int) -> bool:
    """Whether an ASCII character can be one: * + , - . / : < = > ^ ~."""
    return (
        _STAR <= point <= _SLASH or point == _COLON or _LESS <= point <= _GREATER or point == _CARET or point == _TILDE
    )


@part
def _hyphen_length(data: Bytes, at: int, high: int, point: int, classes: Classes) -> int:
    """One to three hyphens, one or two em dashes, an en dash or a tilde, if a letter follows."""
    most = 3 if point == _HYPHEN else 2 if point == _EM_DASH else 1 if point == _EN_DASH or point == _TILDE else 0
    end = at
    for _ in range(most):
        if end >= high or point_at(data, end) != point:
            return 0
        end += width_at(data, end)
        if end < high and class_at(data, end, classes) & ALPHA:
            return end - at
    return 0


@part
def _in_scheme(byte: int) -> bool:
    """Whether a byte is one of + - ."""
    return byte == _PLUS or byte == _HYPHEN or byte == _DOT


@part
def is_url(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether the string is a web or mail address."""
    if _is_location(data, low, high, classes):
        return True
    scheme = low
    letters = 0
    while scheme < high and (class_at(data, scheme, classes) & WORD or _in_scheme(data[scheme])):
        scheme += width_at(data, scheme)
        letters += 1
    if (
        letters >= 2
        and scheme + 3 < high
        and data[scheme] == _COLON
        and data[scheme + 1] == _SLASH
        and data[scheme + 2] == _SLASH
    ):
        if _is_location(data, scheme + 3, high, classes):
            return True
    for at in range(low + 1, high):
        if data[at] == _AT and _is_location(data, at + 1, high, classes):  # user@
            return True
    return False


@part
def _is_location(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether [low, high) is a host, maybe with a port, maybe with a path."""
    end = _domain_end(data, low, high, classes)
    if end > 0 and _ends_location(data, end, high, classes):
        return True
    return low < high and is_digit(data[low]) and _is_address(data, low, high, classes)


@part
def _ends_location(data: Bytes, at: int, high: int, classes: Classes) -> bool:
    """Whether what follows a host is nothing, a port or a path."""
    if at == high:
        return True
    if data[at] == _COLON:
        at += 1
        digits = 0
        while at < high and digits < 5 and class_at(data, at, classes) & DECIMAL:
            at += width_at(data, at)
            digits += 1
        if digits < 2:
            return False
    return at == high or data[at] == _SLASH or data[at] == _QUESTION_MARK or data[at] == _HASH


@part
def _domain_end(data: Bytes, low: int, high: int, classes: Classes) -> int:
    """Where labels separated by full stops end, the last of them in lower case; -1 if they are not a domain."""
    at = low
    label_start = low
    labels = 0
    length = 0
    lower = 0
    while at < high:
        kinds = class_at(data, at, classes)
        if data[at] == _DOT:
            if not _is_label(data, label_start, at, length, classes):
                return -1
            labels += 1
            label_start = at + 1
            length = lower = 0
            at += 1
            continue
        if not (kinds & (HOST | LOWER) or data[at] == _UNDERSCORE or data[at] == _HYPHEN):
            break
        lower += 1 if kinds & LOWER else 0
        length += 1
        at += width_at(data, at)
    return at if labels and 2 <= length <= _LONGEST_TOP_LEVEL and lower == length else -1


@part
def _is_label(data: Bytes, start: int, end: int, length: int, classes: Classes) -> bool:
    if not 1 <= length <= _LONGEST_LABEL:
        return False
    first = class_at(data, start, classes)
    last = class_at(data, start_before(data, end), classes)
    if not (first & HOST and last & HOST):
        return False
    at = start
    while at < end:
        if not (class_at(data, at, classes) & HOST or data[at] == _UNDERSCORE or data[at] == _HYPHEN):
            return False
        at += width_at(data, at)
    return True


@part
def _is_address(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether [low, high) starts with a public IPv4 address and ends as a location may."""
    at = low
    first = second = 0
    for number in range(4):
        if number:
            if at >= high or data[at] != _DOT:
                return False
            at += 1
        octet = digits = 0
        while at < high and class_at(data, at, classes) & DECIMAL:
            if digits == 3:
                return False
            octet |= point_at(data, at) << (_DIGIT_BITS * digits)
            digits += 1
            at += width_at(data, at)
        if digits == 0 or not _is_octet(octet, digits, number):
            return False
        first, second = octet if number == 0 else first, octet if number == 1 else second
    return not _is_private(first, second) and _ends_location(data, at, high, classes)


@part
def _is_octet(octet: int, count: int, number: int) -> bool:
    """Whether the digits are 1–223 (first), 0–255 with leading zeros (middle), 1–254 (last). Digits of other scripts
    count where any digit may stand."""
    first, second, third = octet & _DIGIT, octet >> _DIGIT_BITS & _DIGIT, octet >> 2 * _DIGIT_BITS
    leading = 49 <= first <= 57
    if count < 3:
        return leading or 1 <= number <= 2
    if first == 49:
        return True
    if first != 50:
        return False
    if number == 0:
        return second == 48 or second == 49 or (second == 50 and 48 <= third <= 51)
    return 48 <= second <= 52 or (second == 53 and 48 <= third <= (52 if number == 3 else 53))


@part
def _is_private(first: int, second: int) -> bool:
    if first in (_TEN, _127) or (first == _169 and second == _254) or (first == _192 and second == _168):
        return True
    ten, one, third = second & _DIGIT, second >> _DIGIT_BITS & _DIGIT, second >> 2 * _DIGIT_BITS
    if first == _172 and third == 0:  # 172.16 to 172.31
        return (ten == 49 and 54 <= one <= 57) or (ten == 50 and one > 0) or (ten == 51 and 48 <= one <= 49)
    return False
