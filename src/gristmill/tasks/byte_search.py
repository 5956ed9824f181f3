"""Where a byte, or a bit, is set in a buffer."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SCAN_BYTES = 1 << 18  # compared at a time, so that the result of comparing stays in the cache


def find_byte(data: NDArray[np.uint8], byte: int) -> NDArray[np.int64]:
    """Return all positions of a byte, in order."""
    starts = range(0, len(data), _SCAN_BYTES)
    found = [np.flatnonzero(data[start : start + _SCAN_BYTES] == byte) + start for start in starts]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def unpack_bits(bitmap: pa.Buffer, offset: int, length: int) -> NDArray[np.bool_]:
    """Return Arrow's bits as bools; `Array.to_numpy` would import pandas for that."""
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), count=offset + length, bitorder="little")
    return bits[offset:].view(bool)
