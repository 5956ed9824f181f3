"""Lines as `str.splitlines` has them: ended by U+000A to U+000D, U+001C to U+001E, U+0085, U+2028, U+2029 or \\r\\n."""

import numpy as np

from gristmill.kernels.text.blocks import block_at, range_bits
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK
from gristmill.kernels.text.words_of_bytes import Bytes, count_trailing_zeros


@inline
def find_break(data: Bytes, start: int, stop: int) -> int:
    """Return where the line from `start` on ends."""
    for position in range(start, stop, BLOCK):
        block = block_at(position, stop)
        found = range_bits(data, block, 0x0A, 4) | range_bits(data, block, 0x1C, 3)
        found |= range_bits(data, block, 0xC2, 1) | range_bits(data, block, 0xE2, 1)
        while found:
            at = position + count_trailing_zeros(found)
            if break_length(data, at, stop):
                return at
            found &= found - np.uint64(1)
    return stop


@inline
def break_length(data: Bytes, at: int, stop: int) -> int:
    """Return the bytes of the line break that begins here, at a byte that may begin one; 0 if none does."""
    byte = data[at]
    if byte < 0x80:
        return 2 if byte == 0x0D and at + 1 < stop and data[at + 1] == 0x0A else 1
    if byte == 0xC2:
        return 2 if data[at + 1] == 0x85 else 0
    return 3 if data[at + 1] == 0x80 and data[at + 2] & 0xFE == 0xA8 else 0
