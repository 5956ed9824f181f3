"""Characters of UTF-8 for compiled code: where they start, what they are, which classes they have."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.words_of_bytes import Bytes

Classes = NDArray[np.uint32]


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
def class_of(classes: Classes, point: int) -> int:
    """The classes of a code point, see `code_points.class_table`."""
    return np.int64(classes[np.int64(classes[point >> 8]) + (point & 0xFF)])


@inline
def class_at(data: Bytes, at: int, classes: Classes) -> int:
    """The classes of the character that starts at `at`."""
    return class_of(classes, point_at(data, at))
