"""What may be cut off a piece of text, or found inside it: the compiled patterns of `english.english_rules`.

Every function looks at bytes [low, high) of valid UTF-8 as at a string of its own: nothing outside is seen. Lengths
and positions are in bytes.
"""

import numpy as np
from numpy.typing import NDArray

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
from gristmill.kernels.tokens.english_tables import BASE, EnglishTables
from gristmill.kernels.tokens.jit import as_int, inline, jit

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint32]
Keys = NDArray[np.uint64]

_BASE = np.uint64(BASE)
_PREFIX = FRONT | PUNCTUATION | QUOTE | ICON | MONEY
_SUFFIX = PUNCTUATION | QUOTE | ICON | DASH
_LONGEST_UNIT = 6  # characters
_LONGEST_LABEL = 64
_LONGEST_TOP_LEVEL = 63


@inline
def width_at(data: Bytes, at: int) -> int:
    """Bytes of the character that starts at `at`."""
    lead = data[at]
    if lead < 0x80:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@inline
def point_at(data: Bytes, at: int) -> int:
    """The code point of the character that starts at `at`."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F)
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (np.int64(data[at + 2]) & 0x3F)
    high = (lead & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F)


@inline
def start_before(data: Bytes, at: int) -> int:
    """Where the character that ends at `at` starts."""
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@inline
def is_digit(byte: int) -> bool:
    """Whether a byte is one of the digits 0 to 9."""
    return 48 <= byte <= 57


@inline
def hash_span(data: Bytes, low: int, high: int, salt: Keys) -> np.uint64:
    """The hash of bytes [low, high), as `english_tables.hash_bytes` defines it."""
    total = np.uint64(0)
    power = np.uint64(1)
    for at in range(low, high):
        total += salt[data[at]] * power
        power *= _BASE
    return total if total else np.uint64(1)


@inline
def find_key(keys: Keys, key: np.uint64) -> int:
    """The slot of a key in a hash table, or -1."""
    mask = np.uint64(len(keys) - 1)
    slot = (key >> np.uint64(32)) & mask
    while keys[slot]:
        if keys[slot] == key:
            return as_int(slot)
        slot = (slot + np.uint64(1)) & mask
    return -1


@jit
def prefix_length(data: Bytes, low: int, high: int, classes: Classes) -> int:
    """Length of the prefix to cut off, or 0."""
    first = data[low]
    if classes[point_at(data, low)] & _PREFIX:
        return width_at(data, low)
    if first == 46:  # ..
        end = low
        while end < high and data[end] == 46:
            end += 1
        return end - low if end - low > 1 else 0
    if first == 43:  # + that is no sign of a number
        return 0 if low + 1 < high and is_digit(data[low + 1]) else 1
    if (first == 67 or first == 65) and low + 1 < high and data[low + 1] == 36:  # C$ A$
        return 2
    if first == 85 and low + 2 < high and data[low + 1] == 83 and data[low + 2] == 36:  # US$
        return 3
    return 0


@jit
def suffix_length(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """Length of the longest suffix to cut off, or 0."""
    if low >= high:
        return 0
    last = start_before(data, high)
    kinds = tables.classes[point_at(data, last)]
    if kinds & UNIT_END:
        length = _unit_length(data, low, high, tables)
        if length:
            return length
    if data[last] == 46:
        return _full_stop_length(data, low, high, tables.classes)
    if kinds & _SUFFIX:
        return _mark_length(data, low, last, high)
    # 's and ’s
    if data[last] == 115 or data[last] == 83:
        if last > low and data[last - 1] == 39:
            return 2
        if last - 3 >= low and data[last - 3] == 0xE2 and data[last - 2] == 0x80 and data[last - 1] == 0x99:
            return 4
    return 0


@jit
def _mark_length(data: Bytes, low: int, last: int, high: int) -> int:
    """A mark is a suffix of its own; of ellipsis characters two go together."""
    if high - last == 3 and data[last] == 0xE2 and data[last + 1] == 0x80 and data[last + 2] == 0xA6:
        if last - 3 >= low and data[last - 3] == 0xE2 and data[last - 2] == 0x80 and data[last - 1] == 0xA6:
            return 6
    return high - last


@jit
def _unit_length(data: Bytes, low: int, high: int, tables: EnglishTables) -> int:
    """Length of the longest unit or currency that follows a digit and ends the string."""
    found = 0
    start = high
    for _ in range(_LONGEST_UNIT):
        if start <= low:
            break
        start = start_before(data, start)
        if start > low and is_digit(data[start - 1]):
            if find_key(tables.unit_keys, hash_span(data, start, high, tables.salt)) >= 0:
                found = high - start
    return found


@jit
def _full_stop_length(data: Bytes, low: int, high: int, classes: Classes) -> int:
    start = high
    while start > low and data[start - 1] == 46:
        start -= 1
    if high - start > 1:
        return high - start
    if start == low:
        return 0
    before = start_before(data, start)
    point = point_at(data, before)
    if classes[point] & BEFORE_FULL_STOP:
        return 1
    if before == low:
        return 0
    second = point_at(data, start_before(data, before))
    if classes[point] & UPPER and classes[second] & UPPER:
        return 1
    temperature = point == 70 or point == 67 or point == 75
    return 1 if second == 0xB0 and temperature else 0


@jit
def infix_length(data: Bytes, low: int, at: int, high: int, before: np.uint32, classes: Classes) -> int:
    """Length of the infix that starts at `at`, or 0; `before` is what stands before it (0 at the start)."""
    point = point_at(data, at)
    if point < 0x80 and not _may_be_infix(point):
        return 0
    end = at + width_at(data, at)
    if point == 0x2026 or classes[point] & ICON:
        return end - at
    if point == 46 and end < high and data[end] == 46:
        while end < high and data[end] == 46:
            end += 1
        return end - at
    if at == low or end >= high:
        return 0
    after = classes[point_at(data, end)]
    if point == 46:
        return 1 if before & (LOWER | QUOTE) and after & (UPPER | QUOTE) else 0
    if point == 44:
        return 1 if before & ALPHA and after & ALPHA else 0
    digit_before = is_digit(data[at - 1])
    if digit_before and (point == 43 or point == 45 or point == 42 or point == 94):  # + - * ^
        if is_digit(data[end]) or data[end] == 45:
            return 1
    if not (before & ALPHA or digit_before):
        return 0
    if point == 58 or point == 60 or point == 61 or point == 62 or point == 47:  # : < = > /
        return 1 if after & ALPHA else 0
    return _hyphen_length(data, at, high, point, classes)


@jit
def _may_be_infix(point: int) -> bool:
    """Whether an ASCII character can be one: * + , - . / : < = > ^ ~."""
    return 42 <= point <= 47 or point == 58 or 60 <= point <= 62 or point == 94 or point == 126


@jit
def _hyphen_length(data: Bytes, at: int, high: int, point: int, classes: Classes) -> int:
    """One to three hyphens, one or two em dashes, an en dash or a tilde, if a letter follows."""
    most = 3 if point == 45 else 2 if point == 0x2014 else 1 if point == 0x2013 or point == 126 else 0
    end = at
    for _ in range(most):
        if end >= high or point_at(data, end) != point:
            return 0
        end += width_at(data, end)
        if end < high and classes[point_at(data, end)] & ALPHA:
            return end - at
    return 0


@jit
def _in_scheme(byte: int) -> bool:
    """Whether a byte is one of + - ."""
    return byte == 43 or byte == 45 or byte == 46


@jit
def is_url(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether the string is a web or mail address."""
    if _is_location(data, low, high, classes):
        return True
    scheme = low
    letters = 0
    while scheme < high and (classes[point_at(data, scheme)] & WORD or _in_scheme(data[scheme])):
        scheme += width_at(data, scheme)
        letters += 1
    if letters >= 2 and scheme + 3 < high and data[scheme] == 58 and data[scheme + 1] == 47 and data[scheme + 2] == 47:
        if _is_location(data, scheme + 3, high, classes):
            return True
    for at in range(low + 1, high):
        if data[at] == 64 and _is_location(data, at + 1, high, classes):  # user@
            return True
    return False


@jit
def _is_location(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether [low, high) is a host, maybe with a port, maybe with a path."""
    end = _domain_end(data, low, high, classes)
    if end > 0 and _ends_location(data, end, high, classes):
        return True
    return low < high and is_digit(data[low]) and _is_address(data, low, high, classes)


@jit
def _ends_location(data: Bytes, at: int, high: int, classes: Classes) -> bool:
    """Whether what follows a host is nothing, a port or a path."""
    if at == high:
        return True
    if data[at] == 58:
        at += 1
        digits = 0
        while at < high and digits < 5 and classes[point_at(data, at)] & DECIMAL:
            at += width_at(data, at)
            digits += 1
        if digits < 2:
            return False
    return at == high or data[at] == 47 or data[at] == 63 or data[at] == 35


@jit
def _domain_end(data: Bytes, low: int, high: int, classes: Classes) -> int:
    """Where labels separated by full stops end, the last of them in lower case; -1 if they are no domain."""
    at = low
    label_start = low
    labels = 0
    length = 0
    lower = 0
    while at < high:
        kinds = classes[point_at(data, at)]
        if data[at] == 46:
            if not _is_label(data, label_start, at, length, classes):
                return -1
            labels += 1
            label_start = at + 1
            length = lower = 0
            at += 1
            continue
        if not (kinds & (HOST | LOWER) or data[at] == 95 or data[at] == 45):
            break
        lower += 1 if kinds & LOWER else 0
        length += 1
        at += width_at(data, at)
    return at if labels and 2 <= length <= _LONGEST_TOP_LEVEL and lower == length else -1


@jit
def _is_label(data: Bytes, start: int, end: int, length: int, classes: Classes) -> bool:
    if not 1 <= length <= _LONGEST_LABEL:
        return False
    first = classes[point_at(data, start)]
    last = classes[point_at(data, start_before(data, end))]
    if not (first & HOST and last & HOST):
        return False
    at = start
    while at < end:
        if not (classes[point_at(data, at)] & HOST or data[at] == 95 or data[at] == 45):
            return False
        at += width_at(data, at)
    return True


@jit
def _is_address(data: Bytes, low: int, high: int, classes: Classes) -> bool:
    """Whether [low, high) starts with a public IPv4 address and ends as a location may."""
    at = low
    octets = np.zeros((4, 3), np.int64)
    for number in range(4):
        if number:
            if at >= high or data[at] != 46:
                return False
            at += 1
        digits = 0
        while at < high and classes[point_at(data, at)] & DECIMAL:
            if digits == 3:
                return False
            octets[number, digits] = point_at(data, at)
            digits += 1
            at += width_at(data, at)
        if digits == 0 or not _is_octet(octets[number], digits, number):
            return False
    return not _is_private(octets) and _ends_location(data, at, high, classes)


@jit
def _is_octet(digits: NDArray[np.int64], count: int, number: int) -> bool:
    """Whether the digits are 1–223 (first), 0–255 with leading zeros (middle), 1–254 (last). Digits of other scripts
    count where any digit may stand."""
    first, second, third = digits[0], digits[1], digits[2]
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


@jit
def _is_private(octets: NDArray[np.int64]) -> bool:
    a, b, c = octets[0, 0], octets[0, 1], octets[0, 2]
    d, e, f = octets[1, 0], octets[1, 1], octets[1, 2]
    if (a == 49 and b == 48 and c == 0) or (a == 49 and b == 50 and c == 55):  # 10, 127
        return True
    if a == 49 and b == 54 and c == 57:  # 169.254
        return d == 50 and e == 53 and f == 52
    if a == 49 and b == 57 and c == 50:  # 192.168
        return d == 49 and e == 54 and f == 56
    if a == 49 and b == 55 and c == 50 and f == 0:  # 172.16 to 172.31
        return (d == 49 and 54 <= e <= 57) or (d == 50 and e > 0) or (d == 51 and 48 <= e <= 49)
    return False
