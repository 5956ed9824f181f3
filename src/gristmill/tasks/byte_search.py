"""Where a byte occurs in a buffer."""

import numpy as np
from numpy.typing import NDArray

_SCAN_BYTES = 1 << 18  # compared at a time, so that the result of comparing stays in the cache


def find_byte(data: NDArray[np.uint8], byte: int) -> NDArray[np.int64]:
    """Return all positions of a byte, in order."""
    starts = range(0, len(data), _SCAN_BYTES)
    found = [np.flatnonzero(data[start : start + _SCAN_BYTES] == byte) + start for start in starts]
    return np.concatenate(found) if found else np.zeros(0, np.int64)
